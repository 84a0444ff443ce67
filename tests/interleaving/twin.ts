import type { Rewrite } from './session.ts'

export interface Twin {
  /** For POSTBOX_ORDER. */
  readonly key: string
  /** The guard that is missing, as a sentence. */
  readonly guard: string
  /** By the name of a statement, what is done to its text. */
  readonly breaks: Readonly<Record<string, (text: string) => string>>
  /** The key of the scenario that finds it out. */
  readonly scenario: string
  /** Which promise is broken first. */
  readonly promise?: string
  /** Why it is not found out: the guard is a second lock on the same door. */
  readonly redundant?: string
}

export function rewriteOf({ breaks }: Pick<Twin, 'breaks'>): Rewrite {
  return ({ name, text }) => breaks[name]?.(text) ?? text
}
