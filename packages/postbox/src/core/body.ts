import { type BodyRules, codecOf, invalidBody, type StoredBody, schemaOf } from './body-rules.ts'
import { encodeBody } from './codec.ts'
import { OutboxError } from './errors.ts'
import type { readBody } from './read-body.ts'
import { show } from './show.ts'

export interface BodyInput {
  readonly queue: string
  readonly body: unknown
  /** The content type the caller asks for. */
  readonly label: string | undefined
}

/**
 * Encodes a body for its queue and proves that delivery will accept it, by doing what delivery will do: decode the
 * bytes and run the schema over the result. A `z.date()` body passes any check of the value itself and dies
 * at delivery, because JSON made a string of it. At once where delivery cannot refuse it: of a thousand bodies, a thousand promises would be waited for.
 */
export function writeBody(rules: BodyRules, input: BodyInput): StoredBody | Promise<StoredBody> {
  const schema = schemaOf(rules, input.queue)
  const codec = codecOf(rules, input.queue)
  const lossy = schema === null ? 'refuse' : 'allow'
  const result = encodeBody(input.body, { label: input.label, codec, lossy })
  if (!result.ok) throw invalidBody(input.queue, `${result.problem}: got ${show(input.body)}`)
  const size = result.bytes.byteLength
  if (size > rules.maxBodyBytes) {
    const sentence = `expected the body for queue "${input.queue}" to be at most ${rules.maxBodyBytes} bytes, got ${size} bytes`
    throw new OutboxError('OUTBOX_BODY_TOO_LARGE', sentence)
  }
  const mayFail = schema !== null || codec !== undefined || input.label !== undefined
  return mayFail ? asDelivered(rules, input.queue, result) : result
}

async function asDelivered(rules: BodyRules, queue: string, stored: StoredBody): Promise<StoredBody> {
  await (await reader())(rules, queue, stored).catch(asPublished)
  return stored
}

let read: typeof readBody | undefined

/** What delivery reads with: loaded at the first body that it may refuse, and kept, since `import` takes 20 µs even of what is loaded. */
async function reader(): Promise<typeof readBody> {
  read ??= (await import('./read-body.ts')).readBody
  return read
}

/** The publisher passed a Date and reads of a string: say that the check is made on what will arrive. */
function asPublished(error: unknown): never {
  throw OutboxError.at('as it would be delivered', error)
}
