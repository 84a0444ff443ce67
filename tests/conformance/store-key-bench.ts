// A queue in the order of its keys, statement by statement.
import { randomUUID } from 'node:crypto'
import { beforeEach } from 'vitest'
import type { Executor } from '../../packages/postbox/src/adapters/executor.ts'
import type { Draft } from '../../packages/postbox/src/core/message.ts'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { claimInOrder, type OrderedMessageRow } from '../../packages/postbox/src/sql/claim-in-order.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { insertMessages } from '../../packages/postbox/src/sql/insert-messages.ts'
import { joinKeys } from '../../packages/postbox/src/sql/join-keys.ts'
import { parkDead, quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { registerQueues } from '../../packages/postbox/src/sql/register-queues.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import { resumeKey } from '../../packages/postbox/src/sql/resume-key.ts'
import { skipKey } from '../../packages/postbox/src/sql/skip-key.ts'
import { draftOf } from '../support/settle-bench.ts'
import type { StoredMessage } from '../support/store-snapshot.ts'
import { minute, type StoreBench, token } from './store-bench.ts'

export const lane = 'lane'

export type Dying = 'moved' | 'quarantined' | 'parked'

export interface KeyBench {
  readonly bench: StoreBench
  /** A message of key `a`, unless told otherwise. Returns its id. */
  publish(given?: Partial<Draft>, on?: Executor): Promise<string>
  /** All that may run: by seq. */
  claim(on?: Executor): Promise<readonly OrderedMessageRow[]>
  /** Publishes, claims and buries one. */
  die(how: Dying, given?: Partial<Draft>): Promise<string>
  /** Claims and acknowledges until nothing comes any more: what came, in this order. */
  handleAll(): Promise<readonly OrderedMessageRow[]>
  resume(key: string, on?: Executor): Promise<string | null>
  skip(key: string, on?: Executor): Promise<string | null>
  replay(
    id: string,
    given?: { readonly delayMs?: number; readonly generation?: number; readonly on?: Executor },
  ): Promise<readonly unknown[]>
  join(): Promise<number>
  /** The ids of a key in the order of their rows, dead ones included. */
  inTable(key?: string): Promise<readonly string[]>
  row(id: string): Promise<StoredMessage>
}

export function useKeys(bench: StoreBench): KeyBench {
  const register = { ordered: [lane], others: [] }
  beforeEach(() => bench.run(registerQueues(bench.names, register)))
  const on = (given?: Executor): Executor => given ?? bench.store.database
  const publish: KeyBench['publish'] = async (given = {}, tx) => {
    const draft = draftOf({ queue: lane, key: 'a', isOrdered: true, ...given })
    const batch = { queue: lane, conflict: draft.conflict, drafts: [draft] }
    const [row] = await on(tx).run(insertMessages(bench.names, batch, { wake: 'always', mark: null }))
    return row === undefined ? '' : draft.id
  }
  const claim: KeyBench['claim'] = async (tx) => {
    const place = { after: '0', dueFromMs: null, keys: [], keysFrom: '' }
    const queues = [{ queue: lane, room: 100, leaseMs: minute, ...place }]
    const rows = await on(tx).run(claimInOrder(bench.names, { token, queues }))
    return rows
      .filter((row): row is OrderedMessageRow => row.kind === 'message')
      .toSorted((a, b) => Number(a.seq) - Number(b.seq))
  }
  const bury = { moved: buryDead, quarantined: quarantineDead, parked: parkDead }
  return {
    bench,
    publish,
    claim,
    async die(how, given) {
      const id = await publish(given)
      const claimed = (await claim()).find((row) => row.id === id)
      if (claimed === undefined) throw new Error('expected it to be the first of its key')
      const death = { seq: claimed.seq, token, reason: 'rejected', error: 'bad', attempts: 1 }
      await bench.run(bury[how](bench.names, [death]))
      return id
    },
    async handleAll() {
      const handled: OrderedMessageRow[] = []
      for (let rows = await claim(); rows.length > 0; rows = await claim()) {
        handled.push(...rows)
        const fences = rows.map(({ seq }) => ({ seq, token }))
        await bench.run(deleteAcked(bench.names, fences, { isQuick: false }))
      }
      return handled
    },
    async resume(key, tx) {
      const input = { queue: lane, key, by: 'ann', historyLimit: 20, wake: 'always' } as const
      return (await on(tx).run(resumeKey(bench.names, input)))[0]?.id ?? null
    },
    async skip(key, tx) {
      const input = { queue: lane, key, by: 'ann', operation: randomUUID(), wake: 'always' } as const
      return (await on(tx).run(skipKey(bench.names, input)))[0]?.id ?? null
    },
    replay: (id, { on: tx, delayMs = 0, generation = null as never } = {}) =>
      on(tx).run(
        replayDeadLetter(bench.names, {
          id,
          by: 'ann',
          generation,
          delayMs,
          historyLimit: 20,
          wake: 'always',
        }),
      ),
    async join() {
      return (await bench.run(joinKeys(bench.names, { queues: [lane] })))[0]!.joined
    },
    async inTable(key = 'a') {
      const rows = await bench.rows()
      return rows.filter((row) => (row.key ?? row.laterKey) === key).map(({ id }) => id)
    },
    async row(id) {
      const found = (await bench.rows()).find((row) => row.id === id)
      if (found === undefined) throw new Error('expected it to be among the messages')
      return found
    },
  }
}
