// One more than a row stores (describe-error.ts), which sees by it that something was cut.
const limit = 8_193
const deepest = 5

/** An error as text for a sentence: name, message and causes. Never throws, whatever the error does when touched. */
export function errorText(error: unknown): string {
  const texts: string[] = []
  for (let current = error, depth = 0; (depth === 0 || current !== undefined) && depth < deepest; depth++) {
    texts.push(one(current).slice(0, limit))
    current = causeOf(current)
  }
  return texts.join(' ← ').slice(0, limit)
}

function one(error: unknown): string {
  try {
    return String(error)
  } catch {
    return 'an error that cannot be printed'
  }
}

/** Of many errors the first stands for all: Node's "connection refused" has an empty message, and its reasons in there. */
function causeOf(error: unknown): unknown {
  try {
    if (!(error instanceof Error)) return undefined
    return error.cause ?? (error instanceof AggregateError ? error.errors[0] : undefined)
  } catch {
    return undefined
  }
}
