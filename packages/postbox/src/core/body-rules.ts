import type { Codec } from './codec.ts'
import { OutboxError } from './errors.ts'
import { isTypeOnly, type QueueMap } from './queues.ts'
import type { StandardSchema } from './standard-schema.ts'

/** How an outbox turns bodies into bytes and back, for all its queues. */
export interface BodyRules {
  /** null: any queue name, bodies unchecked. */
  readonly queues: QueueMap | null
  readonly codec: Codec | undefined
  readonly maxBodyBytes: number
}

export interface StoredBody {
  readonly bytes: Uint8Array
  readonly contentType: string | null
}

export function codecOf(rules: BodyRules, queue: string): Codec | undefined {
  return rules.queues?.[queue]?.codec ?? rules.codec
}

/** The schema to run; null when there is none, or only a type. */
export function schemaOf(rules: BodyRules, queue: string): StandardSchema | null {
  const schema = rules.queues?.[queue]?.body
  return schema === undefined || isTypeOnly(schema) ? null : schema
}

export function invalidBody(queue: string, problem: string, cause?: unknown): OutboxError {
  const sentence = `the body for queue "${queue}" is not valid: ${problem}`
  return new OutboxError('OUTBOX_INVALID_BODY', sentence, cause === undefined ? undefined : { cause })
}
