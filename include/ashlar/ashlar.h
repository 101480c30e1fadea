// Everything of Ashlar's public interface.
#ifndef ASHLAR_ASHLAR_H_
#define ASHLAR_ASHLAR_H_

#include "ashlar/check.h"
#include "ashlar/checkpoint.h"
#include "ashlar/document.h"
#include "ashlar/hits.h"
#include "ashlar/options.h"
#include "ashlar/prometheus.h"
#include "ashlar/query.h"
#include "ashlar/reindex.h"
#include "ashlar/salvage.h"
#include "ashlar/schema.h"
#include "ashlar/snapshot.h"
#include "ashlar/status.h"
#include "ashlar/store.h"
#include "ashlar/version.h"

#endif  // ASHLAR_ASHLAR_H_
