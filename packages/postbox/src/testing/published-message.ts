import type { BodyRules } from '../core/body-rules.ts'
import { pendingMessage } from '../pending.ts'
import type { MemoryMessage } from './memory/memory-database.ts'
import type { PublishedMessage } from './test-outbox.ts'

/** A stored message as it was when it was published. */
export function publishedMessage(rules: BodyRules, message: MemoryMessage): PublishedMessage {
  const {
    attempts: _,
    deliveries: __,
    inFlight: ___,
    ...published
  } = pendingMessage(rules, {
    id: message.id,
    seq: String(message.seq),
    queue: message.queue,
    key: message.key,
    timer: message.timerId,
    body: Buffer.from(message.body).toString('base64'),
    headers: message.headers === null ? null : JSON.stringify(message.headers),
    attempts: '0',
    deliveries: '0',
    created: String(message.createdAt),
    due: message.dueAt === null ? null : String(message.dueAt),
    leased: 'false',
    generation: message.generation === null ? null : String(message.generation),
  })
  return published
}
