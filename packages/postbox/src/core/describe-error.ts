const limit = 8_192
const deepest = 5
const encoder = new TextEncoder()

/**
 * An error as text for the row: name, message and causes. Never throws, whatever the error does when touched, and always
 * storable: a NUL in an exception's message would make the write that records the failure fail itself, for ever.
 */
export function describeError(error: unknown): string {
  const text = chain(error).join(' ← ')
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

function chain(error: unknown): string[] {
  const texts: string[] = []
  for (let current = error, depth = 0; (depth === 0 || current !== undefined) && depth < deepest; depth++) {
    texts.push(one(current))
    current = causeOf(current)
  }
  return texts
}

function one(error: unknown): string {
  try {
    return String(error)
  } catch {
    return 'an error that cannot be printed'
  }
}

function causeOf(error: unknown): unknown {
  try {
    return error instanceof Error ? error.cause : undefined
  } catch {
    return undefined
  }
}
