// Handlers that work in a transaction: whatever the order, what they did is there once.
import { message, timer } from './given.ts'
import { ack, anHourPasses, cancel, claim, commit, renew, retry } from './steps.ts'
import type { Scenario } from './terms.ts'
import { complete, completeLater, fence, work, workAndComplete, workUnfenced } from './transactional.ts'

export const transactionalScenarios: readonly Scenario[] = [
  {
    key: 'tx-reclaim',
    title: 'two handlers in transactions, of which the second takes the message over when the lease ends',
    given: [message(1)],
    isTransactional: true,
    programs: { A: [claim(), fence, work, complete], B: [anHourPasses, claim(), fence, workAndComplete] },
  },
  {
    key: 'tx-renew',
    title:
      'a handler in a transaction, a renewal by its own process, and a sweep by another when the lease ends',
    given: [message(1)],
    lanes: { B: 'A' },
    programs: { A: [claim(), fence, work, complete], B: [anHourPasses, renew], C: [claim()] },
  },
  {
    key: 'tx-unfenced',
    title: 'two handlers in transactions that work first, and find out by their delete who holds the lease',
    given: [message(1)],
    isTransactional: true,
    programs: { A: [claim(), workUnfenced, complete], B: [anHourPasses, claim(), workUnfenced, complete] },
  },
  {
    key: 'tx-ack',
    title: 'a handler in a transaction, and one without that settles after it may have lost its lease',
    given: [message(1)],
    programs: { A: [claim(), fence, work, completeLater, commit], B: [anHourPasses, claim(), ack] },
  },
]

/** More of them, or the same in smaller steps: not on every run. */
export const largeTransactionalScenarios: readonly Scenario[] = [
  {
    key: 'tx-three',
    title: 'two handlers in transactions, and time that passes whenever it likes',
    given: [message(1)],
    isTransactional: true,
    programs: {
      A: [claim(), fence, work, complete],
      B: [claim(), fence, work, complete],
      T: [anHourPasses],
    },
  },
  {
    key: 'tx-renew-three',
    title: 'two handlers in transactions, and the renewals of one of them',
    given: [message(1)],
    isTransactional: true,
    lanes: { B: 'A' },
    programs: {
      A: [claim(), fence, work, complete],
      B: [anHourPasses, renew],
      C: [claim(), fence, work, complete],
    },
  },
  {
    key: 'tx-retry',
    title: 'a handler in a transaction, one that fails without, and somebody who cancels',
    given: [timer(1, 't')],
    programs: {
      A: [claim(), fence, work, completeLater, commit],
      B: [anHourPasses, claim(), retry()],
      C: [cancel('t')],
    },
  },
]
