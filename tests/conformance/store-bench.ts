// Statements one by one, on a store that is empty at the beginning of each test.
import { afterEach, beforeEach } from 'vitest'
import type { Executor } from '../../packages/postbox/src/adapters/executor.ts'
import type { Draft, Receipt } from '../../packages/postbox/src/core/message.ts'
import { deliveriesOf } from '../../packages/postbox/src/runtime/claim-answer.ts'
import { type Burial, buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { cancelTimer } from '../../packages/postbox/src/sql/cancel-timer.ts'
import {
  type ClaimedQueue,
  type ClaimRow,
  claimMessages,
  type MessageRow,
  type QueueRow,
} from '../../packages/postbox/src/sql/claim-messages.ts'
import { insertMessage } from '../../packages/postbox/src/sql/insert-message.ts'
import { eachRow } from '../../packages/postbox/src/sql/insert-plain.ts'
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import { quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import type { Release } from '../../packages/postbox/src/sql/release-leases.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { draftOf } from '../support/settle-bench.ts'
import { inSteps, type StoredDeadLetter, type StoredMessage } from '../support/store-snapshot.ts'
import type { Store, StoreKind } from '../support/stores.ts'

export const token = '0190163d-8694-739b-9aea-966c26f8ad91'
export const minute = 60_000

export interface StoreBench {
  readonly kind: StoreKind
  readonly store: Store
  readonly names: Names
  run<Row>(statement: Statement<Row>): Promise<readonly Row[]>
  /** A message of queue `orders`, due at once; null: a waiting timer was kept. */
  publish(given?: Partial<Draft>, on?: Executor): Promise<Receipt | null>
  cancel(timerId: string, given?: { readonly queue?: string; readonly on?: Executor }): Promise<boolean>
  /** Of queue `orders`, all that is free. */
  claim(given?: Claiming): Promise<Claimed>
  /** Publishes and claims: so many, or one for each draft. */
  hold(given?: number | readonly Partial<Draft>[]): Promise<readonly Release[]>
  /** Publishes, claims and buries one, in either place, as a run that failed for the first time. */
  die(given?: Partial<Draft>, burial?: Dying): Promise<string>
  /** Moves what was claimed to the dead letters, with one statement: all of them failed at the same moment. */
  bury(claimed: readonly { readonly seq: string }[]): Promise<void>
  /** By seq, times in whole minutes from now. */
  rows(): Promise<readonly StoredMessage[]>
  dead(): Promise<readonly StoredDeadLetter[]>
}

export interface Claiming extends Partial<ClaimedQueue> {
  readonly token?: string
  /** Of the code that claims. */
  readonly generation?: number | null
  readonly on?: Executor
}

export interface Claimed {
  readonly queue: QueueRow
  /** By seq. */
  readonly messages: readonly MessageRow[]
  readonly seqs: readonly string[]
  readonly fences: readonly Release[]
}

export interface Dying extends Partial<Burial> {
  /** @default moved */
  readonly place?: 'moved' | 'quarantined'
}

export function useStore(kind: StoreKind): StoreBench {
  const open = kind.use()
  let store: Store
  beforeEach(async () => {
    store = await open()
  })
  afterEach(() => store.close())

  const run = <Row>(statement: Statement<Row>): Promise<readonly Row[]> => store.database.run(statement)
  const publish: StoreBench['publish'] = async (given, on = store.database) => {
    const draft = draftOf(given)
    const rows = await on.run(insertMessage(store.names, draft, { wake: 'always', mark: null }))
    return eachRow(rows, [draft])[0] ?? null
  }
  const claim: StoreBench['claim'] = async (claiming = {}) => {
    const { token: as = token, on = store.database, generation = null, ...given } = claiming
    const input = { token: as, queues: [wanted(given)], generation }
    return claimedOf(await on.run(claimMessages(store.names, input)), as)
  }
  const hold: StoreBench['hold'] = async (given = 1) => {
    const drafts = typeof given === 'number' ? Array.from({ length: given }, () => ({})) : given
    for (const draft of drafts) await publish(draft)
    return (await claim()).fences
  }
  return {
    kind,
    get store() {
      return store
    },
    get names() {
      return store.names
    },
    run,
    publish,
    claim,
    hold,
    async cancel(timerId, { queue = 'orders', on = store.database } = {}) {
      return (await on.run(cancelTimer(store.names, { queue, timerId, mark: null }))).length > 0
    },
    async die(given, { place = 'moved', ...burial } = {}) {
      const published = await publish(given)
      const { messages } = await claim({ queue: given?.queue ?? 'orders' })
      const { seq, id } = messages.find((message) => message.seq === published?.seq)!
      const burials = [{ seq, token, reason: 'rejected', error: 'bad', attempts: 1, ...burial }]
      await run(place === 'moved' ? buryDead(store.names, burials) : quarantineDead(store.names, burials))
      return id
    },
    async bury(claimed) {
      const death = { token, reason: 'rejected', error: 'bad', attempts: 1 }
      await run(
        buryDead(
          store.names,
          claimed.map(({ seq }) => ({ seq, ...death })),
        ),
      )
    },
    rows: async () => inSteps(await store.snapshot()).messages,
    dead: async () => inSteps(await store.snapshot()).dead,
  }
}

/** What to claim: all of queue `orders`, for a minute. */
export function wanted(given: Partial<ClaimedQueue> = {}): ClaimedQueue {
  return { queue: 'orders', room: 500, leaseMs: minute, after: '0', dueFromMs: null, sweep: true, ...given }
}

function claimedOf(rows: readonly ClaimRow[], as: string): Claimed {
  const messages = rows.filter((row) => row.kind === 'message').sort(bySeq)
  return {
    queue: rows.find((row) => row.kind === 'queue')!,
    messages,
    seqs: seqsOf(messages),
    fences: messages.map((row) => ({ seq: row.seq, token: as, deliveriesBefore: deliveriesOf(row) - 1 })),
  }
}

/** In order. */
export function seqsOf(rows: readonly { readonly seq: string }[]): readonly string[] {
  return rows.toSorted(bySeq).map(({ seq }) => seq)
}

function bySeq(a: { readonly seq: string }, b: { readonly seq: string }): number {
  return Number(a.seq) - Number(b.seq)
}

export const inMinutes = (count: number): Pick<Draft, 'schedule'> => ({
  schedule: { kind: 'after', delayMs: count * minute },
})

/** From one time to another, both in milliseconds, in whole minutes. */
export function minutesBetween(from: number, to: number | string | null): number {
  return Math.round((Number(to) - from) / minute) + 0
}

export function decoded(base64: string): string {
  return Buffer.from(base64, 'base64').toString()
}
