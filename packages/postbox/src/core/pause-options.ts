import { OutboxError } from './errors.ts'
import { show } from './show.ts'
import { assertOptions, assertValue, type Check, isRecord, name, type Shape } from './validate.ts'

export interface PauseOptions {
  /** Who does it, for whoever asks why nothing is delivered. At most 255 bytes. */
  readonly by: string
}

const isName = name(255)
const by: Check = (value) =>
  isName(value) ?? (String(value).trim() === '' ? 'to say who it is: not to be blank' : null)

const shape = { by } satisfies Shape & Record<keyof PauseOptions, Check>

/** Refuses a pause, or its end, that nobody answers for. */
export function resolvePause(given: PauseOptions, method: 'pause' | 'resume'): string {
  if (!isRecord(given)) {
    const sentence = `expected the options of ${method} to be an object, got ${show(given)}: give { by }`
    throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
  }
  assertOptions(given, shape, `the options of ${method}`)
  assertValue('OUTBOX_INVALID_OPTION', { label: 'by', check: by, value: given.by })
  return given.by
}
