// The guards of the library, by area. Of each: a name for `--only`, the sentence that it makes true, and how to take it out: a text that
// occurs once in its file, and what to put in its place. `tests` are the files of which one has to fail then, the quickest that do; `titled`
// narrows a slow one, `timeoutMs` is for those that notice by waiting in vain. Files are below packages/postbox/src, unless they begin with tests/.
import { claiming } from './mutations-claiming.mjs'
import { deciding } from './mutations-deciding.mjs'
import { delivering } from './mutations-delivering.mjs'
import { fresh } from './mutations-fresh.mjs'
import { handling } from './mutations-inbox.mjs'
import { keeping } from './mutations-kept.mjs'
import { deciding as decidingKeys } from './mutations-keys.mjs'
import { leasing } from './mutations-leasing.mjs'
import { operating } from './mutations-operating.mjs'
import { operators } from './mutations-operators.mjs'
import { ordering } from './mutations-order.mjs'
import { pausing } from './mutations-pausing.mjs'
import { publishing } from './mutations-publishing.mjs'
import { settling } from './mutations-settling.mjs'
import { suspecting } from './mutations-suspects.mjs'
import { timing } from './mutations-timing.mjs'
import { transacting } from './mutations-transactions.mjs'
import { waking } from './mutations-waking.mjs'

const source = 'packages/postbox/src/'

export const areas = [
  { title: 'Publishing', mutations: publishing.map(placed) },
  { title: 'Waking', mutations: waking.map(placed) },
  { title: 'Claiming', mutations: [...claiming, ...fresh].map(placed) },
  { title: 'Kept statements', mutations: keeping.map(placed) },
  { title: 'Ordered queues', mutations: ordering.map(placed) },
  { title: 'Keys that wait', mutations: decidingKeys.map(placed) },
  { title: 'Leases', mutations: leasing.map(placed) },
  { title: 'Suspects', mutations: suspecting.map(placed) },
  { title: 'What a delivery comes to', mutations: deciding.map(placed) },
  { title: 'Signals and time', mutations: delivering.map(placed) },
  { title: 'Pausing', mutations: pausing.map(placed) },
  { title: 'Settling', mutations: settling.map(placed) },
  { title: 'Timers and dead letters', mutations: timing.map(placed) },
  { title: 'Transactions of handlers', mutations: transacting.map(placed) },
  { title: 'The inbox', mutations: handling.map(placed) },
  { title: 'Operators and auditors', mutations: operators.map(placed) },
  { title: 'Many dead letters at once', mutations: operating.map(placed) },
]

export const mutations = areas.flatMap((area) => area.mutations)

function placed(mutation) {
  const { file, tests } = mutation
  return { ...mutation, file: `${source}${file}`, tests: tests.map(placeOf) }
}

function placeOf(test) {
  return test.startsWith('tests/') ? test : `${source}${test}`
}
