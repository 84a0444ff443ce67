import {
  type SubscribeOptions,
  type SubscribeSettings,
  settingsOf,
  subscribeShape,
} from './subscribe-options.ts'
import { assertOptions, type Check, type Shape, wholeNumber } from './validate.ts'

export interface BatchOptions extends SubscribeOptions {
  /** The most messages that the handler gets at once. @default 100 */
  readonly size?: number
  /** How long the first of them may wait for the others. 0: not at all. @default 50 */
  readonly maxWaitMs?: number
}

export interface BatchSettings {
  readonly settings: SubscribeSettings
  readonly size: number
  readonly maxWaitMs: number
}

const shape = {
  ...subscribeShape,
  size: wholeNumber(1, 10_000),
  maxWaitMs: wholeNumber(0, 60_000),
} satisfies Shape & Record<keyof BatchOptions, Check>

export function resolveBatchOptions(given: BatchOptions | undefined, base: SubscribeSettings): BatchSettings {
  assertOptions(given, shape, 'the options of subscribeBatch')
  return {
    settings: settingsOf(given, base),
    size: given?.size ?? 100,
    maxWaitMs: given?.maxWaitMs ?? 50,
  }
}
