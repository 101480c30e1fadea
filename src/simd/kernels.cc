#include "src/simd/kernels.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "src/simd/levels.h"

namespace ashlar::simd {
namespace {

// __builtin_cpu_supports asks the operating system too (XGETBV): whether it keeps the registers.
bool MachineHas(Level level) {
#ifdef __x86_64__
  __builtin_cpu_init();
  switch (level) {
    case Level::kScalar:
      return true;
    case Level::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt");
    case Level::kAvx512:
      return MachineHas(Level::kAvx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
  }
#endif
  return level == Level::kScalar;
}

Level HighestAllowed(const char* wish) {
  if (wish == nullptr) return Level::kAvx512;
  if (std::strcmp(wish, "scalar") == 0) return Level::kScalar;
  if (std::strcmp(wish, "avx2") == 0) return Level::kAvx2;
  return Level::kAvx512;
}

}  // namespace

const Kernels* KernelsFor(Level level) {
  if (!MachineHas(level)) return nullptr;
#ifdef __x86_64__
  if (level == Level::kAvx512) return &kAvx512Kernels;
  if (level == Level::kAvx2) return &kAvx2Kernels;
#endif
  return &kScalarKernels;
}

const Kernels& ChooseKernels(const char* wish) {
  const Level highest = HighestAllowed(wish);
  for (const Level level : {Level::kAvx512, Level::kAvx2}) {
    if (level > highest) continue;
    if (const Kernels* kernels = KernelsFor(level)) return *kernels;
  }
  return kScalarKernels;
}

const Kernels& BestKernels() {
  static const Kernels& chosen = ChooseKernels(std::getenv("ASHLAR_SIMD"));
  return chosen;
}

}  // namespace ashlar::simd
