import { type CommonErrorCode, OutboxError } from './errors.ts'
import { show } from './show.ts'
import { suggest } from './suggest.ts'
import { byteLength, textProblem } from './text.ts'

/** Says what is wrong with a value (`to be …`), or null when it is right. */
export type Check = (value: unknown) => string | null

/** Option name → its check. The keys are the known names, so a misspelt option is found by the same table. */
export type Shape = Readonly<Record<string, Check>>

/**
 * Checks an options object against its shape and reports every problem in one error: an operator fixing a deployment
 * should not have to restart once per mistake. An option that is `undefined` counts as absent.
 */
export function assertOptions(given: unknown, shape: Shape, place: string): void {
  if (given === undefined) return
  const problems = optionProblems(given, shape, place)
  if (problems.length > 0) throw new OutboxError('OUTBOX_INVALID_OPTION', problems.join('; '))
}

/** `within`: the option that they are the value of (`defaults`); each name begins with it, then. */
export function optionProblems(
  given: unknown,
  shape: Shape,
  place: string | { readonly within: string },
): string[] {
  const [whole, prefix] =
    typeof place === 'string' ? [place, ''] : [`\`${place.within}\``, `${place.within}.`]
  if (!isRecord(given)) return [`expected ${whole} to be an object, got ${show(given)}`]
  const inherited = Object.keys(shape).filter((name) => name in given)
  return [...new Set([...Object.keys(given), ...inherited])].flatMap((name) => {
    const value = given[name]
    const check = Object.hasOwn(shape, name) ? shape[name] : undefined
    if (check === undefined) return [unknownOption(prefix + name, value, { name, known: Object.keys(shape) })]
    const problem = value === undefined ? null : check(value)
    return problem === null ? [] : [expected(prefix + name, problem, value)]
  })
}

/** The one grammar of every complaint about a value. */
export function expected(name: string, toBe: string, value: unknown): string {
  return `expected \`${name}\` ${toBe}, got ${show(value)}`
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function wholeNumber(least: number, most: number = Number.MAX_SAFE_INTEGER): Check {
  return (value) =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
      ? null
      : `to be a whole number from ${least} to ${most}`
}

export function oneOf(...allowed: readonly string[]): Check {
  return (value) =>
    allowed.includes(value as string) ? null : `to be one of ${allowed.map((name) => `'${name}'`).join(', ')}`
}

export function orNull(check: Check): Check {
  return (value) => {
    const problem = value === null ? null : check(value)
    return problem === null ? null : `${problem}, or null`
  }
}

/** For a value that is checked elsewhere, with an error code of its own. */
export const anything: Check = () => null

export const callable: Check = (value) => (typeof value === 'function' ? null : 'to be a function')

/** A text that becomes part of an index entry: bounded in bytes, storable as it is. */
export function name(mostBytes: number): Check {
  return (value) => {
    if (typeof value !== 'string' || value === '') return 'to be a non-empty string'
    const problem = textProblem(value)
    if (problem !== null) return `to be storable text, but it ${problem}`
    return byteLength(value) <= mostBytes ? null : `to be at most ${mostBytes} bytes long`
  }
}

/** Throws on the first problem of a single named value, in the grammar of `expected`. */
export function assertValue(
  code: CommonErrorCode,
  { label, check, value }: { label: string; check: Check; value: unknown },
): void {
  const problem = check(value)
  if (problem !== null) throw new OutboxError(code, expected(label, problem, value))
}

function unknownOption(
  given: string,
  value: unknown,
  { name, known }: { readonly name: string; readonly known: readonly string[] },
): string {
  const meant = suggest(name, known)
  const end = meant === undefined ? ` (known: ${known.join(', ')})` : `: did you mean \`${meant}\`?`
  return `unknown option \`${given}\` with value ${show(value)}${end}`
}
