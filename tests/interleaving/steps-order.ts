// Steps of ordered queues: what a process does with the messages of a key, one after the other.
import { deliveriesOf } from '../../packages/postbox/src/runtime/claim-answer.ts'
import { claimInOrder, type OrderedQueue } from '../../packages/postbox/src/sql/claim-in-order.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { extendLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { insertMessages } from '../../packages/postbox/src/sql/insert-messages.ts'
import { joinKeys } from '../../packages/postbox/src/sql/join-keys.ts'
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import { parkDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { idOf } from './books.ts'
import { draftOf, leaseMs, leaseOf, queue } from './steps.ts'
import type { Ending, Lease, Made, Session, Step, Told } from './terms.ts'

const hourMs = 3_600_000

/** One statement, as a batch of one. */
export function publishTo(key: string, number: number, delayHours: number | null = null): Step {
  const made: Made = { id: idOf(number), timer: null, delayHours, key }
  return {
    label: `publish #${number} of ${key}`,
    async perform({ names, run }) {
      const batch = { queue, conflict: 'none', drafts: [draftOf(made, 'none')] } as const
      const [row] = await run(insertMessages(names, batch, { wake: 'poll', mark: null }))
      return [{ kind: 'armed', made, conflict: 'none', seq: row!.seq }]
    },
  }
}

/** By the index of the keys and among the fresh rows: what a sweep looks at. */
export function claimFirsts(room = 10): Step {
  return claiming(`claim firsts${room === 10 ? '' : ` ${room}`}`, { room, keysFrom: '' })
}

/** Among the fresh rows alone, as claims do between two sweeps. */
export function claimFresh(room = 10): Step {
  return claiming(`claim fresh${room === 10 ? '' : ` ${room}`}`, { room })
}

/** Right behind what it has settled last, and nowhere else. */
export const claimBehind: Step = claiming('claim behind', { after: '1000000' })

function claiming(label: string, wanted: Partial<OrderedQueue>): Step {
  return {
    label,
    neverWaits: true,
    async perform(session) {
      const token = session.newToken()
      const settled = settledBy(session)
      const keys = [...settled].map(([key, after]) => ({ key, after }))
      settled.clear()
      const base = { queue, room: 10, leaseMs, after: '0', dueFromMs: null, keys, keysFrom: null }
      const asked = { ...base, ...wanted }
      const rows = await session.run(claimInOrder(session.names, { token, queues: [asked] }))
      const claimed = rows
        .flatMap((row) => (row.kind === 'message' ? [row] : []))
        .toSorted((a, b) => Number(BigInt(a.seq) - BigInt(b.seq)))
        .map((row) => ({
          kind: 'claimed' as const,
          lease: { ...leaseOf(row, token), key: row.key },
          deliveries: deliveriesOf(row),
          keepsName: false,
        }))
      const starts = claimed.flatMap(({ lease }) => take(session, lease))
      const isAll = asked.after === '0' && asked.keysFrom !== null
      const enough = { kind: 'claimed enough' as const, room: asked.room - claimed.length }
      return [...claimed, ...starts, ...(isAll ? [enough] : [])]
    },
  }
}

/** The first of a key that comes into the hand is started; those behind it stand in line. */
function take(session: Session, lease: Lease): readonly Told[] {
  const isBehind = session.hand.some(({ key }) => key === lease.key)
  session.takeInHand([lease])
  return isBehind ? [] : start(session, lease)
}

function start(session: Session, lease: Lease): readonly Told[] {
  running(session).add(nameOf(lease))
  return [{ kind: 'started', lease }]
}

const nameOf = ({ seq, token }: Lease): string => `${seq} ${token}`
const running = (session: Session): Set<string> => session.recall('running', () => new Set<string>())
const settledBy = (session: Session): Map<string, string> =>
  session.recall('settled', () => new Map<string, string>())

interface First {
  readonly label: string
  readonly ending: Ending
  readonly isGone: boolean
  readonly statement: (names: Names, lease: Lease) => Statement<{ readonly seq: string }>
}

/**
 * A statement about what runs. When it is written that it is gone, the next of its key starts; when it is not, those behind it are to be given back, and nothing of
 * them is started.
 */
function settlingFirst({ label, ending, isGone, statement }: First): Step {
  return {
    label,
    async perform(session) {
      const lease = session.hand.find((one) => running(session).has(nameOf(one)))
      if (lease === undefined) return []
      const rows = await session.run(statement(session.names, lease))
      session.letGo([lease])
      const isWritten = rows.length > 0
      const told: Told = { kind: isWritten ? 'written' : 'lease lost', lease, ending }
      const next = session.hand.find(({ key }) => key === lease.key)
      if (!isWritten || !isGone) return [told]
      if (next === undefined) settledBy(session).set(lease.key!, lease.seq)
      return [told, ...(next === undefined ? [] : start(session, next))]
    },
  }
}

export const ackFirst: Step = settlingFirst({
  label: 'ack',
  ending: { kind: 'acked', followOns: [] },
  isGone: true,
  statement: (names, lease) => deleteAcked(names, [lease], { isQuick: true }),
})

export function ackPublishing(key: string, number: number): Step {
  const made: Made = { id: idOf(number), timer: null, delayHours: null, key }
  return settlingFirst({
    label: `ack and publish #${number} of ${key}`,
    ending: { kind: 'acked', followOns: [made] },
    isGone: true,
    statement: (names, lease) =>
      deleteWithFollowOns(names, {
        wake: 'poll',
        settled: [{ ...lease, followOns: [draftOf(made, 'none')] }],
      }),
  })
}

export function retryFirst(delayHours = 0): Step {
  return settlingFirst({
    label: `retry${delayHours === 0 ? '' : ' later'}`,
    ending: { kind: 'retried', takesName: false, delayHours },
    isGone: false,
    statement: (names, lease) =>
      rescheduleRetried(names, [{ ...lease, delayMs: delayHours * hourMs, error: 'no' }], false),
  })
}

export const parkFirst: Step = settlingFirst({
  label: 'park',
  ending: { kind: 'parked' },
  isGone: false,
  statement: (names, lease) =>
    parkDead(names, [{ ...lease, reason: 'rejected', error: 'no', attempts: lease.attempts + 1 }]),
})

/** A statement about what stands in line. */
function settlingRest(label: string, ending: Ending, statement: typeof releaseRows): Step {
  return {
    label,
    async perform(session) {
      const rest = session.hand.filter((one) => !running(session).has(nameOf(one)))
      if (rest.length === 0) return []
      const rows = await session.run(statement(session.names, rest))
      const landed = new Set(rows.map(({ seq }) => seq))
      if (ending.kind === 'released') session.letGo(rest)
      return rest.map((lease): Told => {
        return { kind: landed.has(lease.seq) ? 'written' : 'lease lost', lease, ending }
      })
    },
  }
}

function releaseRows(names: Names, leases: readonly Lease[]): Statement<{ readonly seq: string }> {
  return releaseLeases(names, leases, false)
}

export const giveBack: Step = settlingRest(
  'give back the rest',
  { kind: 'released', takesName: false },
  releaseRows,
)

export const renewRest: Step = settlingRest('renew the rest', { kind: 'extended' }, (names, leases) =>
  extendLeases(
    names,
    leases.map((lease) => ({ ...lease, leaseMs })),
  ),
)

export const join: Step = {
  label: 'join',
  neverWaits: true,
  async perform({ names, run }) {
    const [row] = await run(joinKeys(names, { queues: [queue] }))
    return [{ kind: 'joined', count: row!.joined }]
  },
}

/** An hour after the last step: what was to come by then, and all that is first. */
export const closingInOrder: readonly Step[] = [join, claimFirsts()]
