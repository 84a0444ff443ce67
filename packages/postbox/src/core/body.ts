import { type Codec, decodeBody, encodeBody } from './codec.ts'
import { errorText } from './error-text.ts'
import { OutboxError } from './errors.ts'
import { isTypeOnly, type QueueMap } from './queues.ts'
import { show } from './show.ts'
import { describeIssues, type SchemaResult, type StandardSchema } from './standard-schema.ts'
import { isRecord } from './validate.ts'

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

export interface BodyInput {
  readonly queue: string
  readonly body: unknown
  /** The content type the caller asks for. */
  readonly label: string | undefined
}

/**
 * Encodes a body for its queue and proves that delivery will accept it, by doing what delivery will do: decode the
 * bytes and run the schema over the result. A `z.date()` body passes any check of the value itself and dies
 * at delivery, because JSON made a string of it.
 */
export async function writeBody(rules: BodyRules, input: BodyInput): Promise<StoredBody> {
  const schema = schemaOf(rules, input.queue)
  const codec = codecOf(rules, input.queue)
  const lossy = schema === null ? 'refuse' : 'allow'
  const result = encodeBody(input.body, { label: input.label, codec, lossy })
  if (!result.ok) throw invalid(input.queue, `${result.problem}: got ${show(input.body)}`)
  const size = result.bytes.byteLength
  if (size > rules.maxBodyBytes) {
    const sentence = `expected the body for queue "${input.queue}" to be at most ${rules.maxBodyBytes} bytes, got ${size} bytes`
    throw new OutboxError('OUTBOX_BODY_TOO_LARGE', sentence)
  }
  const mayFail = schema !== null || codec !== undefined || input.label !== undefined
  if (mayFail) await readBody(rules, input.queue, result).catch(asPublished)
  return result
}

/** What the handler gets for these bytes: decoded, and put through the queue's schema (its output, not its input). */
export async function readBody(rules: BodyRules, queue: string, stored: StoredBody): Promise<unknown> {
  const value = decodeStored(rules, queue, stored)
  const schema = schemaOf(rules, queue)
  if (schema === null) return value
  const result = await runSchema(schema, queue, value)
  if (result.issues === undefined) return result.value
  throw invalid(queue, `${describeIssues(result.issues)}: got ${show(value)}`)
}

/** The value of stored bytes, before any schema. */
export function decodeStored(rules: BodyRules, queue: string, stored: StoredBody): unknown {
  try {
    return decodeBody(stored.bytes, stored.contentType, codecOf(rules, queue))
  } catch (cause) {
    const type = stored.contentType ?? 'JSON'
    throw invalid(
      queue,
      `${stored.bytes.byteLength} bytes cannot be decoded as ${type} (${errorText(cause)})`,
      cause,
    )
  }
}

async function runSchema(
  schema: StandardSchema,
  queue: string,
  value: unknown,
): Promise<SchemaResult<unknown>> {
  let result: unknown
  try {
    result = await schema['~standard'].validate(value)
  } catch (cause) {
    throw invalid(queue, `its schema threw ${show(errorText(cause))} for ${show(value)}`, cause)
  }
  if (isRecord(result)) return result as unknown as SchemaResult<unknown>
  throw invalid(queue, `its schema answered ${show(result)} for ${show(value)}`)
}

function codecOf(rules: BodyRules, queue: string): Codec | undefined {
  return rules.queues?.[queue]?.codec ?? rules.codec
}

/** The publisher passed a Date and reads of a string: say that the check is made on what will arrive. */
function asPublished(error: unknown): never {
  throw OutboxError.at('as it would be delivered', error)
}

/** The schema to run; null when there is none, or only a type. */
function schemaOf(rules: BodyRules, queue: string): StandardSchema | null {
  const schema = rules.queues?.[queue]?.body
  return schema === undefined || isTypeOnly(schema) ? null : schema
}

function invalid(queue: string, problem: string, cause?: unknown): OutboxError {
  const sentence = `the body for queue "${queue}" is not valid: ${problem}`
  return new OutboxError('OUTBOX_INVALID_BODY', sentence, cause === undefined ? undefined : { cause })
}
