import { describeError } from './describe-error.ts'
import { type Layer, layersOf } from './error-layers.ts'
import type { OutboxError } from './errors.ts'
import { ignoreRejection } from './ignore-rejection.ts'
import { prismaStateOf } from './prisma-state.ts'
import { runtimeError } from './runtime-errors.ts'
import { show } from './show.ts'
import { sqlStateOf } from './sql-state.ts'
import type { SubscribeSettings, Verdict } from './subscribe-options.ts'
import { TerminalError } from './terminal-error.ts'

/** `trouble`: a rule of the user's failed, and the verdict was found without it. */
export interface Classified {
  readonly verdict: Verdict
  readonly trouble?: OutboxError
}

type Rules = Pick<SubscribeSettings, 'classify' | 'terminalErrors'>

// Bad data (22) and violated constraints (23): the same message will fail in the same way. All else may pass.
const terminalClasses: readonly string[] = ['22', '23']

/**
 * Whether a failure is for good: by the user's `classify`, by `terminalErrors`, by `TerminalError` or by SQLSTATE, through whatever is wrapped
 * around them. Never throws, whatever the error does when touched.
 */
export function classifyError(error: unknown, { classify, terminalErrors }: Rules): Classified {
  const asked = classify === null ? {} : ask(classify, error)
  if (asked.verdict !== undefined) return { verdict: asked.verdict }
  const layers = layersOf(error)
  const listed = findListed(layers, terminalErrors)
  const isTerminal = listed.isFound || layers.some(TerminalError.is) || hasTerminalState(error)
  const trouble = asked.trouble ?? listed.trouble
  return { verdict: isTerminal ? 'terminal' : 'transient', ...(trouble && { trouble }) }
}

function ask(classify: NonNullable<Rules['classify']>, error: unknown): Partial<Classified> {
  let answer: unknown
  try {
    answer = classify(error)
  } catch (cause) {
    return { trouble: troubleOf('`classify`', cause) }
  }
  if (answer === 'terminal' || answer === 'transient') return { verdict: answer }
  if (answer === undefined) return {}
  ignoreRejection(answer)
  const sentence = `expected \`classify\` to return 'terminal', 'transient' or undefined, got ${show(answer)}`
  return { trouble: runtimeError('OUTBOX_INVALID_POLICY', sentence) }
}

/** A class may say by itself what its instances are, and an error what it is an instance of: both may throw. */
function findListed(
  layers: readonly Layer[],
  classes: Rules['terminalErrors'],
): { readonly isFound: boolean; readonly trouble?: OutboxError } {
  let trouble: OutboxError | undefined
  const isFound = layers.some((layer) =>
    classes.some((one) => {
      try {
        return layer instanceof one
      } catch (cause) {
        trouble ??= troubleOf('a comparison with `terminalErrors`', cause)
        return false
      }
    }),
  )
  return { isFound, ...(trouble && { trouble }) }
}

function hasTerminalState(error: unknown): boolean {
  const state = sqlStateOf(error) ?? prismaStateOf(error) ?? ''
  return terminalClasses.includes(state.slice(0, 2))
}

function troubleOf(what: string, cause: unknown): OutboxError {
  return runtimeError('OUTBOX_INVALID_POLICY', `${what} threw ${show(describeError(cause))}`, { cause })
}
