import { makeDraft } from '../core/draft.ts'
import { assertQueue } from '../core/queue-name.ts'
import type { QueueMap } from '../core/queues.ts'
import { assertOptions, type Shape, wholeNumber } from '../core/validate.ts'
import { deadLetterOf } from '../dead-letters.ts'
import { pendingMessage } from '../pending.ts'
import type { OutboxParts } from '../seam.ts'
import { insertMessage } from '../sql/insert-message.ts'
import { eachRow } from '../sql/insert-plain.ts'
import { listDeadLetters } from '../sql/list-dead-letters.ts'
import { peekPending } from '../sql/peek-pending.ts'
import { publishedMessage } from './published-message.ts'
import type { FeedOptions, TestOutbox } from './test-outbox.ts'
import type { TestStore } from './test-store.ts'

const all = Number.MAX_SAFE_INTEGER - 1
const countShape: Shape = { attempts: wholeNumber(0), deliveries: wholeNumber(0) }
const anyDead = { reason: null, sinceMs: null, untilMs: null, key: null, search: null }

/** What a test sees of the tables, and puts into them. */
export function lookInto(
  { outbox, settings: { deadLetters } }: Pick<OutboxParts, 'outbox' | 'settings'>,
  store: TestStore,
): Pick<TestOutbox, 'feed' | 'published' | 'pending' | 'dead'> {
  const { names } = outbox
  // A misspelt one would be found empty, and a test that expects nothing would pass.
  const assertKnown = (queue: string | undefined): void => {
    if (queue !== undefined) assertQueue(queue, outbox.queues)
  }
  return {
    async feed(queue, body, given = {}) {
      const { attempts = 0, deliveries = 0, ...options }: FeedOptions = given
      assertOptions({ attempts, deliveries }, countShape, 'the options of feed')
      const rules = { ...outbox, queues: withoutSchemas(outbox.queues) }
      const draft = await makeDraft(rules, { queue, body, options })
      const rows = await store.feed(insertMessage(names, draft, { wake: 'always', mark: null }))
      const [receipt] = eachRow(rows, [draft])
      if (receipt === undefined) return null
      store.memory.alter(Number(receipt.seq), { attempts, deliveries })
      return receipt
    },
    published(queue?: string) {
      assertKnown(queue)
      const chosen = store.published.filter((message) => queue === undefined || message.queue === queue)
      return chosen.map((message) => publishedMessage(outbox, message)) as never
    },
    pending(queue) {
      assertKnown(queue)
      const rows = store.memory.runNow(peekPending(names, { queue: queue ?? null, limit: all, mark: null }))
      return rows.map((row) => pendingMessage(outbox, row))
    },
    dead(queue) {
      assertKnown(queue)
      const query = { queue: queue ?? null, ...anyDead }
      const rows = store.memory.runNow(listDeadLetters(names, { query, after: null, limit: all }))
      return rows.map((row) => deadLetterOf({ outbox, deadLetters }, row))
    },
  }
}

/** The same queues for bodies of any kind. */
function withoutSchemas(queues: QueueMap | null): QueueMap | null {
  if (queues === null) return null
  return Object.fromEntries(Object.entries(queues).map(([name, { body: _, ...other }]) => [name, other]))
}
