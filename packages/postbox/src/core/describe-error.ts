import { errorText } from './error-text.ts'
import type { OutboxError } from './errors.ts'
import { ignoreRejection } from './ignore-rejection.ts'
import { runtimeError } from './runtime-errors.ts'
import { show } from './show.ts'

const limit = 8_192
const encoder = new TextEncoder()

/**
 * An error as text for the row: name, message and causes. Never throws, whatever the error does when touched, and always
 * storable: a NUL in an exception's message would make the write that records the failure fail itself, for ever.
 */
export function describeError(error: unknown): string {
  return storable(errorText(error))
}

/** What the row stores of an error. `trouble`: the user's describer failed. */
export interface Described {
  readonly text: string | null
  readonly trouble?: OutboxError
}

/** For an error that a describer was to redact: what it could not describe is not stored as it is. */
const undescribed = 'an error that describeError could not describe'

/** The user's describer, made safe: its text is storable, too, and its failure is told beside a fixed text. Never throws. */
export function describerOf(
  custom: ((error: unknown) => string | null) | undefined,
): (error: unknown) => Described {
  if (custom === undefined) return (error) => ({ text: describeError(error) })
  return (error) => {
    let text: unknown
    try {
      text = custom(error)
    } catch (cause) {
      return failed(`\`describeError\` threw ${show(describeError(cause))}`, { cause })
    }
    if (text === null) return { text: null }
    if (typeof text === 'string') return { text: storable(text) }
    ignoreRejection(text)
    // Only its type: it may be the error itself.
    return failed(`expected \`describeError\` to return text or null, got a value of type ${typeof text}`)
  }
}

function failed(sentence: string, options?: ErrorOptions): Described {
  return { text: undescribed, trouble: runtimeError('OUTBOX_INVALID_POLICY', sentence, options) }
}

/** Cut before it is cleaned and measured: a message of 10 MB is not read to its end. */
function storable(text: string): string {
  return capped(text.slice(0, limit + 1).replace(unstorable, '\ufffd'))
}

/** As many whole characters as fit. */
function capped(text: string): string {
  if (encoder.encode(text).byteLength <= limit) return text
  const room = new Uint8Array(limit - 3)
  const { read } = encoder.encodeInto(text, room)
  return `${text.slice(0, read)}…`
}

// NUL, and surrogates without their other half.
const unstorable = /\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
