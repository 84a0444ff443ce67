import { isBranded } from './errors.ts'

const brand: unique symbol = Symbol.for('postbox.terminal') as never

/** Throw it for what no retry will mend: the message goes to the dead letters at once. */
export class TerminalError extends Error {
  override readonly name: string = 'TerminalError'
  readonly [brand] = true

  /** Tells one without `instanceof`, which fails when two copies of the package are loaded. Its causes are not looked at. */
  static is(error: unknown): error is TerminalError {
    return isBranded(error, brand)
  }
}
