import type { Scenario } from './scenario.ts'
import { backlogs } from './scenarios-backlog.ts'
import { latencies } from './scenarios-latency.ts'
import { publishers } from './scenarios-publish.ts'
import { specials } from './scenarios-special.ts'

/** In the order of the page. */
export const scenarios: readonly Scenario[] = [...backlogs, ...publishers, ...latencies, ...specials]
