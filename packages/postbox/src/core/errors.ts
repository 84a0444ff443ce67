import { errorCatalogue } from './error-catalogue.ts'
import type { runtimeErrorCatalogue } from './runtime-error-catalogue.ts'

/** The codes whose hints OutboxError knows by itself. */
export type CommonErrorCode = keyof typeof errorCatalogue

// Not a union of two named types: of that the compiler would print the name, where it can list the codes.
export type ErrorCode = keyof (typeof errorCatalogue & typeof runtimeErrorCatalogue)

interface HintedOptions extends ErrorOptions {
  readonly hint: string
}

const brand: unique symbol = Symbol.for('postbox.error') as never

/** A misuse or a broken database: `code` for machines, `message` for people, `hint` for the next step. */
export class OutboxError extends Error {
  override readonly name: string = 'OutboxError'
  readonly code: ErrorCode
  /** What to do about it. */
  readonly hint: string
  /** Where the code is explained. */
  readonly docs: string
  readonly [brand] = true
  readonly #sentence: string

  constructor(code: CommonErrorCode, sentence: string, options?: ErrorOptions)
  constructor(code: ErrorCode, sentence: string, options: HintedOptions)
  constructor(code: ErrorCode, sentence: string, options?: Partial<HintedOptions>) {
    const hint = options?.hint ?? errorCatalogue[code as CommonErrorCode]
    super(`${sentence}${/[.?!]$/.test(sentence) ? '' : '.'} ${hint}`, options)
    this.#sentence = sentence
    this.code = code
    this.hint = hint
    this.docs = `docs/reference/errors.md#${code.toLowerCase()}`
  }

  /** The same error, saying where in a larger input it was found (`bodies[3]`); other errors as they are. */
  static at(place: string, error: unknown): unknown {
    if (!(error instanceof OutboxError)) return error
    const { code, hint, cause } = error
    const options = cause === undefined ? { hint } : { hint, cause }
    return new OutboxError(code, `${place}: ${error.#sentence}`, options)
  }

  /** Tells our errors without `instanceof`, which fails when two copies of the package are loaded. */
  static is(error: unknown, code?: ErrorCode): error is OutboxError {
    if (!isBranded(error, brand)) return false
    return code === undefined || (error as OutboxError).code === code
  }
}

/**
 * Somebody else has the message now, or may soon have it: the reason of the signal that a handler gets. Its hint is in the common
 * catalogue: what index.ts passes on and the runtime uses, too, a bundler gives to those who only publish, with all that it imports.
 */
export class LeaseLostError extends OutboxError {
  override readonly name: string = 'LeaseLostError'

  constructor(sentence: string, options?: ErrorOptions) {
    super('OUTBOX_LEASE_LOST', sentence, options)
  }
}

/** Whether an object carries the symbol. A proxy may throw when it is asked: then it does not. */
export function isBranded(value: unknown, symbol: symbol): boolean {
  try {
    return typeof value === 'object' && value !== null && symbol in value
  } catch {
    return false
  }
}
