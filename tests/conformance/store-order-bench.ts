// Statements of ordered queues, on the tables of a bench.
import type { Executor } from '../../packages/postbox/src/adapters/executor.ts'
import type { Draft, Receipt } from '../../packages/postbox/src/core/message.ts'
import {
  claimInOrder,
  type OrderedMessageRow,
  type OrderedQueue,
  type OrderedQueueRow,
} from '../../packages/postbox/src/sql/claim-in-order.ts'
import { insertMessages } from '../../packages/postbox/src/sql/insert-messages.ts'
import { eachRow } from '../../packages/postbox/src/sql/insert-plain.ts'
import { joinKeys } from '../../packages/postbox/src/sql/join-keys.ts'
import type { Release } from '../../packages/postbox/src/sql/release-leases.ts'
import { draftOf, fencesOf } from '../support/settle-bench.ts'
import { minute, type StoreBench, token } from './store-bench.ts'

export interface OrderClaiming extends Partial<OrderedQueue> {
  readonly token?: string
  readonly generation?: number | null
  readonly on?: Executor
}

export interface OrderClaimed {
  readonly queue: OrderedQueueRow
  /** By seq. */
  readonly messages: readonly OrderedMessageRow[]
  readonly seqs: readonly string[]
  readonly fences: readonly Release[]
}

export interface OrderBench {
  /** Of queue `orders`: one statement, a message for each key; null: without one. Returns what was written, by seq. */
  publish(
    keys: readonly (string | null)[],
    given?: Partial<Draft>,
    on?: Executor,
  ): Promise<readonly Receipt[]>
  /** All that may be had, by all ways to find it. */
  claim(given?: OrderClaiming): Promise<OrderClaimed>
  join(on?: Executor): Promise<number>
  /** What waits, as `key:seq`, those that join their key later as `(key)`. */
  waiting(): Promise<readonly string[]>
}

export function orderBench(bench: StoreBench): OrderBench {
  return {
    async publish(keys, given = {}, on = bench.store.database) {
      const drafts = keys.map((key) => draftOf({ key, isOrdered: key !== null, ...given }))
      const conflict = drafts[0]?.conflict ?? 'none'
      const statement = insertMessages(
        bench.names,
        { queue: 'orders', conflict, drafts },
        { wake: 'always', mark: null },
      )
      return eachRow(await on.run(statement), drafts).toSorted((a, b) => Number(a.seq) - Number(b.seq))
    },
    async claim({ token: as = token, generation = null, on = bench.store.database, ...given } = {}) {
      const base = { queue: 'orders', room: 500, leaseMs: minute, after: '0', dueFromMs: null }
      const wanted = { ...base, keys: [], keysFrom: '', ...given }
      const rows = await on.run(claimInOrder(bench.names, { token: as, queues: [wanted], generation }))
      const messages = rows
        .flatMap((row) => (row.kind === 'message' ? [row] : []))
        .toSorted((a, b) => Number(a.seq) - Number(b.seq))
      const seqs = messages.map(({ seq }) => seq)
      const queue = rows.find((row) => row.kind === 'queue')!
      return { queue, messages, seqs, fences: fencesOf(messages, as) }
    },
    async join(on = bench.store.database) {
      const [row] = await on.run(joinKeys(bench.names, { queues: ['orders'] }))
      return row!.joined
    },
    async waiting() {
      const rows = await bench.rows()
      return rows.map(({ key, laterKey, seq }) => (laterKey === null ? `${key}:${seq}` : `(${laterKey})`))
    },
  }
}
