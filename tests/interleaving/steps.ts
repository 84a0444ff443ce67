// Steps: the library's own statements, each of them alone or inside the transaction that the session has open.
import type { Conflict, Draft } from '../../packages/postbox/src/core/message.ts'
import { deliveriesOf } from '../../packages/postbox/src/runtime/claim-answer.ts'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { cancelTimer } from '../../packages/postbox/src/sql/cancel-timer.ts'
import { claimFresh } from '../../packages/postbox/src/sql/claim-fresh.ts'
import { claimMessages, type MessageRow } from '../../packages/postbox/src/sql/claim-messages.ts'
import { countDelivery } from '../../packages/postbox/src/sql/count-delivery.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { extendLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { insertMessage } from '../../packages/postbox/src/sql/insert-message.ts'
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import { pauseQueue, resumeQueue } from '../../packages/postbox/src/sql/pause-queue.ts'
import { quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { idOf } from './books.ts'
import { replaceOnce } from './replace-once.ts'
import type { Ending, Lease, Made, Step } from './terms.ts'

const hourMs = 3_600_000
export const leaseMs = 60_000
export const queue = 'orders'

/** Every lease that is not renewed is over after it. No row is touched and no lock waited for, as it is with time. */
export const anHourPasses: Step = {
  label: 'an hour passes',
  async perform(session) {
    session.passHour()
    return [{ kind: 'an hour passed' }]
  },
}

export const begin: Step = { label: 'begin', perform: async (session) => [await session.begin()] }
export const commit: Step = ending('commit')
export const rollback: Step = ending('rollback')

function ending(how: 'commit' | 'rollback'): Step {
  const perform: Step['perform'] = async (session) =>
    session.isInTransaction ? [await session.end(how)] : []
  return { label: how, perform }
}

/** What a claim of everything, from the lowest row on (a sweep), takes: at most `room` rows. */
export function claim(room = 10): Step {
  return claiming(`claim${room === 10 ? '' : ` ${room}`}`, room, (statement) => statement)
}

/** By a process of the version before: it does not take the name off the row. */
export const claimAsBefore: Step = claiming('claim as before', 10, (statement) => ({
  ...statement,
  text: replaceOnce(
    statement.text,
    /timer_id = null,\s+fired_timer_id = coalesce\(m\.timer_id, m\.fired_timer_id\)/,
    'key = m.key',
  ),
}))

type Rewrite = <Row>(statement: Statement<Row>) => Statement<Row>

function claiming(label: string, room: number, rewrite: Rewrite): Step {
  return {
    label,
    neverWaits: true,
    async perform(session) {
      const token = session.newToken()
      const wanted = { queue, room, leaseMs, after: '0', dueFromMs: null, sweep: true }
      const statement = claimMessages(session.names, { token, queues: [wanted] })
      const rows = (await session.run(rewrite(statement))).filter((row) => row.kind === 'message')
      const claimed = rows.map((row) => ({
        kind: 'claimed' as const,
        lease: leaseOf(row, token),
        deliveries: deliveriesOf(row),
        keepsName: label === 'claim as before',
      }))
      session.takeInHand(claimed.map(({ lease }) => lease))
      return [...claimed, { kind: 'claimed enough', room: room - rows.length }]
    },
  }
}

/** What is fresh, before the claim that looks at everything. */
export const claimFirst: Step = {
  label: 'claim what is fresh',
  neverWaits: true,
  async perform(session) {
    const token = session.newToken()
    const rows = await session.run(claimFresh(session.names, { token, queue, room: 10, leaseMs, after: '0' }))
    const claimed = rows.map((row) => ({
      kind: 'claimed' as const,
      lease: leaseOf(row, token),
      deliveries: deliveriesOf(row),
      keepsName: false,
    }))
    session.takeInHand(claimed.map(({ lease }) => lease))
    return claimed
  },
}

export const pause: Step = pausing('pause', pauseQueue)
export const resume: Step = pausing('resume', resumeQueue)

function pausing(label: 'pause' | 'resume', statement: typeof pauseQueue): Step {
  return {
    label,
    async perform(session) {
      const input = { queue, by: session.letter, wake: 'poll' } as const
      const rows = await session.run(statement(session.names, input))
      const kind = label === 'pause' ? 'paused' : 'resumed'
      return [{ kind, by: session.letter, isDone: rows.length > 0 }]
    },
  }
}

export function leaseOf(row: MessageRow, token: string): Lease {
  const { seq, id, attempts } = row
  return { seq, id, token, attempts: Number(attempts), deliveriesBefore: deliveriesOf(row) - 1 }
}

/** The same, and may wait: for twins that do more harm than that. */
export function patient({ neverWaits: _, ...step }: Step): Step {
  return step
}

interface Settling {
  readonly label: string
  readonly ending: Ending
  readonly statement: (names: Names, leases: readonly Lease[]) => Statement<{ readonly seq: string }>
  readonly keeps?: true
  readonly others?: Pick<Step, 'neverWaits' | 'givesUp'>
}

/** A statement about all that the session has in its hand. What comes back was written, what does not had lost its lease. */
function settling({ label, ending, statement, keeps, others }: Settling): Step {
  return {
    label,
    ...others,
    async perform(session) {
      const leases = [...session.hand]
      if (leases.length === 0) return []
      const rows = await session.run(statement(session.names, leases))
      if (!keeps) session.letGo(leases)
      const landed = new Set(rows.map(({ seq }) => seq))
      return leases.map((lease) => ({
        kind: landed.has(lease.seq) ? 'written' : 'lease lost',
        lease,
        ending,
      }))
    },
  }
}

export const ack: Step = settling({
  label: 'ack',
  ending: { kind: 'acked', followOns: [] },
  statement: deleteAcked,
})

/** Of the one message in hand, which is about to be run. */
export const count: Step = settling({
  label: 'count',
  ending: { kind: 'counted' },
  keeps: true,
  statement(names, [lease]) {
    const { seq, token, deliveriesBefore } = lease!
    return countDelivery(names, { seq, token, deliveries: deliveriesBefore + 1 })
  },
})

/** Steps over rows that are locked. */
export const renew: Step = settling({
  label: 'renew',
  ending: { kind: 'extended' },
  keeps: true,
  others: { neverWaits: true },
  statement: (names, leases) =>
    extendLeases(
      names,
      leases.map((lease) => ({ ...lease, leaseMs })),
    ),
})

/** Whether who goes back to waiting takes the name of his timer back, and how long he waits for somebody who is about to take it. */
export type NameManner = 'named' | 'named, impatient' | 'nameless'

const manner = (names: NameManner): Pick<Step, 'givesUp'> =>
  names === 'named, impatient' ? { givesUp: true } : {}

export function retry({ delayHours = 0, names = 'named' as NameManner } = {}): Step {
  const takesName = names !== 'nameless'
  return settling({
    label: `retry${delayHours === 0 ? '' : ' later'}${names === 'named' ? '' : ` (${names})`}`,
    ending: { kind: 'retried', takesName, delayHours },
    others: manner(names),
    statement: (tables, leases) =>
      rescheduleRetried(
        tables,
        leases.map((lease) => ({ ...lease, delayMs: delayHours * hourMs, error: 'no' })),
        takesName,
      ),
  })
}

export function snooze({ delayHours = 0, names = 'named' as NameManner } = {}): Step {
  const takesName = names !== 'nameless'
  return settling({
    label: `snooze${delayHours === 0 ? '' : ' for later'}${names === 'named' ? '' : ` (${names})`}`,
    ending: { kind: 'snoozed', takesName, delayHours },
    others: manner(names),
    statement: (tables, leases) =>
      snoozeMessages(
        tables,
        leases.map((lease) => ({ ...lease, delayMs: delayHours * hourMs })),
        takesName,
      ),
  })
}

export function release({ names = 'named' as NameManner } = {}): Step {
  const takesName = names !== 'nameless'
  return settling({
    label: `release${names === 'named' ? '' : ` (${names})`}`,
    ending: { kind: 'released', takesName },
    others: manner(names),
    statement: (tables, leases) => releaseLeases(tables, leases, takesName),
  })
}

const burials = (leases: readonly Lease[]) =>
  leases.map((lease) => ({ ...lease, reason: 'rejected', error: 'no', attempts: lease.attempts + 1 }))

export const bury: Step = settling({
  label: 'bury',
  ending: { kind: 'buried' },
  statement: (names, leases) => buryDead(names, burials(leases)),
})

export const quarantine: Step = settling({
  label: 'quarantine',
  ending: { kind: 'quarantined' },
  statement: (names, leases) => quarantineDead(names, burials(leases)),
})

/** One follow-on for the first lease in hand. */
export function ackWithFollowOn(number: number, timer: string | null = null): Step {
  const made: Made = { id: idOf(number), timer, delayHours: null }
  return settling({
    label: `ack and publish #${number}`,
    ending: { kind: 'acked', followOns: [made] },
    statement: (names, leases) =>
      deleteWithFollowOns(names, {
        wake: 'poll',
        settled: leases.map((lease, nth) => ({
          ...lease,
          followOns: nth === 0 ? [draftOf(made, timer === null ? 'none' : 'keep')] : [],
        })),
      }),
  })
}

interface Publishing {
  readonly timer?: string | null
  readonly conflict?: Conflict
  readonly delayHours?: number | null
}

export function publish(
  number: number,
  { timer = null, conflict = 'keep', delayHours = null }: Publishing = {},
): Step {
  const made: Made = { id: idOf(number), timer, delayHours }
  const asked = timer === null ? 'none' : conflict
  const verb = timer === null ? 'publish' : conflict === 'replace' ? `replace ${timer} by` : `arm ${timer} as`
  return {
    label: `${verb} #${number}`,
    async perform(session) {
      const options = { wake: 'poll', mark: null } as const
      const [row] = await session.run(insertMessage(session.names, draftOf(made, asked), options))
      if (row !== undefined) return [{ kind: 'armed', made, conflict: asked, seq: row.seq }]
      return asked === 'none' || timer === null ? [] : [{ kind: 'kept', timer, conflict: asked }]
    },
  }
}

export function draftOf({ id, timer, delayHours, key = null }: Made, conflict: Conflict): Draft {
  const fixed = {
    id,
    queue,
    key,
    isOrdered: key !== null,
    headers: null,
    generation: null,
    body: Buffer.from('{}'),
  }
  const schedule =
    delayHours === null
      ? ({ kind: 'now' } as const)
      : ({ kind: 'after', delayMs: delayHours * hourMs } as const)
  return { ...fixed, timerId: timer, conflict, schedule }
}

export function cancel(timer: string): Step {
  return {
    label: `cancel ${timer}`,
    async perform({ names, run }) {
      const [row] = await run(cancelTimer(names, { queue, timerId: timer, mark: null }))
      return [row ? { kind: 'cancelled', seq: row.seq, timer } : { kind: 'nothing to cancel', timer }]
    },
  }
}

export function replay(number: number): Step {
  const id = idOf(number)
  return {
    label: `replay #${number}`,
    async perform({ names, run, letter }) {
      const rules = { by: letter, generation: null, delayMs: 0, historyLimit: 20, wake: 'poll' } as const
      const [row] = await run(replayDeadLetter(names, { id, ...rules }))
      const answer = row!.answer
      return [answer === 'replayed' ? { kind: answer, id } : { kind: 'not replayed', id, because: answer }]
    },
  }
}
