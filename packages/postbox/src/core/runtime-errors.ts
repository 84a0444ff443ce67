import { OutboxError } from './errors.ts'
import { type RuntimeErrorCode, runtimeErrorCatalogue } from './runtime-error-catalogue.ts'

/** An error with a code of the runtime's catalogue. It brings its hint along: OutboxError itself does not carry that table. */
export function runtimeError(code: RuntimeErrorCode, sentence: string, options?: ErrorOptions): OutboxError {
  return new OutboxError(code, sentence, { ...options, hint: runtimeErrorCatalogue[code] })
}
