// Claims that begin at a cursor, and publishers who have drawn their place and not committed: nothing may end up below it.
import { type Claimer, createClaimer } from '../../packages/postbox/src/runtime/claimer.ts'
import type { Lane } from '../../packages/postbox/src/runtime/lane.ts'
import { fakeClock } from '../support/fake-clock.ts'
import { replaceOnce } from './replace-once.ts'
import { commit, publish } from './steps.ts'
import type { Scenario, Session, Step, Told } from './terms.ts'
import type { Twin } from './twin.ts'

/** Has its transaction's number before it draws a place: the microseconds between the two are the sweep's. */
const beginNumbered: Step = {
  label: 'begin',
  async perform(session) {
    const began = await session.begin()
    await session.work('select pg_current_xact_id()', [])
    return [began]
  },
}

/** By the library's claimer, from where it believes that nothing lies below. No transaction lives longer than it waits for: its clock stands. */
const claimNext: Step = {
  label: 'claim from the cursor',
  neverWaits: true,
  async perform(session) {
    const claimer = session.recall('claimer', () => claimerOf(session))
    const found = await claimer.claim([{ queue: 'orders', room: 10, leaseMs: 60_000 }], 'claim')
    const claimed = found.flatMap(({ held }) =>
      held.map(({ lease }): Told => {
        const { seq, id, token, attempt, deliveries } = lease
        return {
          kind: 'claimed',
          lease: { seq, id, token, attempts: attempt - 1, deliveriesBefore: deliveries - 1 },
          deliveries,
          keepsName: false,
        }
      }),
    )
    return [...claimed, { kind: 'claimed enough', room: 10 - claimed.length, isSure: true }]
  },
}

function claimerOf(session: Session): Claimer {
  const run: Lane['run'] = async (given) => {
    const statement = typeof given === 'function' ? given() : given
    return statement === null ? [] : session.run(statement)
  }
  return createClaimer({ lane: { run, connection: 0 }, names: session.names, clock: fakeClock() })
}

export const cursorScenario: Scenario = {
  key: 'cursor',
  title: 'two who publish and commit in any order, and claims that begin at a cursor',
  given: [],
  programs: {
    A: [beginNumbered, publish(1), commit],
    B: [beginNumbered, publish(2), commit],
    C: [claimNext, claimNext, claimNext],
  },
}

export const cursorTwin: Twin = {
  key: 'cursor-xmax',
  guard: 'a cursor waits for every transaction older than the claim, not than its snapshot',
  breaks: {
    claim_messages: (text) =>
      replaceOnce(
        text,
        'pg_current_xact_id()::text as own',
        'pg_snapshot_xmax(pg_current_snapshot())::text as own',
      ),
  },
  scenario: 'cursor',
  promise: 'what is free is found',
}
