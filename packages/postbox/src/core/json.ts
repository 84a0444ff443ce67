import { errorText } from './error-text.ts'

/**
 * JSON text of a value, or the reason and the path why JSON would lose or change something of it. `JSON.stringify` drops
 * functions, turns NaN into null, a Map into `{}` and a Date into a string, all without a word; a message is read
 * by another process later, so the publisher must hear about it now.
 */
export type JsonResult =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly path: string; readonly problem: string }

/** `lossy: 'refuse'` also refuses Date, Map and their like; `'allow'` leaves those to the queue's schema. */
export function toJson(value: unknown, lossy: 'refuse' | 'allow'): JsonResult {
  try {
    const found = findProblem(value, { lossy, above: [] })
    if (found !== null) return { ok: false, path: `body${found.path}`, problem: found.problem }
    const text = JSON.stringify(value)
    if (text === undefined) return { ok: false, path: 'body', problem: 'is undefined after toJSON()' }
    return { ok: true, text }
  } catch (error) {
    return { ok: false, path: 'body', problem: `cannot be read: ${errorText(error)}` }
  }
}

/** On the way through a value. One for all of it, so that a body in which nothing is wrong leaves nothing behind but its text. */
interface Walk {
  readonly lossy: 'refuse' | 'allow'
  /** What contains the value that is looked at. */
  readonly above: object[]
}

/** The path is that from the value that was looked at; who called puts his own step before it. */
interface Problem {
  readonly path: string
  readonly problem: string
}

function findProblem(value: unknown, walk: Walk): Problem | null {
  const problem = problemOf(value, walk)
  if (problem !== null) return { path: '', problem }
  if (typeof value !== 'object' || value === null) return null
  walk.above.push(value)
  const found = findInside(value, walk)
  walk.above.pop()
  return found
}

function findInside(value: object, walk: Walk): Problem | null {
  const json: unknown = hasToJson(value) ? value.toJSON() : value
  if (json !== value) return findProblem(json, walk)
  if (Array.isArray(value)) {
    // Not `entries()` of a sparse array's keys: a hole becomes null in JSON, so it must be seen as undefined.
    for (let index = 0; index < value.length; index++) {
      const found = findProblem(value[index], walk)
      if (found !== null) return { path: `[${index}]${found.path}`, problem: found.problem }
    }
    return null
  }
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key]
    // `{ note: undefined }` is how TypeScript spells an absent member, and JSON leaves it out: nothing is lost.
    if (member === undefined) continue
    const found = findProblem(member, walk)
    if (found !== null) return { path: `.${key}${found.path}`, problem: found.problem }
  }
  return null
}

function problemOf(value: unknown, walk: Walk): string | null {
  switch (typeof value) {
    case 'undefined':
      return 'is undefined'
    case 'bigint':
      return 'is a bigint, which JSON cannot hold: send a string'
    case 'function':
    case 'symbol':
      return `is a ${typeof value}`
    case 'number':
      return Number.isFinite(value) ? null : `is ${value}, which JSON turns into null`
    case 'object':
      return value === null ? null : objectProblem(value, walk)
    default:
      return null
  }
}

function objectProblem(value: object, { lossy, above }: Walk): string | null {
  if (above.includes(value)) return 'refers back to an object that contains it (circular)'
  if (value instanceof Promise) return 'is a Promise: an await is missing'
  // Its toJSON() gives null, and a schema that coerces would make 1970 of that.
  if (value instanceof Date && Number.isNaN(value.getTime())) return 'is an invalid Date'
  if (lossy === 'allow') return null
  if (value instanceof Date)
    return 'is a Date, which arrives as a string: send toISOString() or give the queue a schema'
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    return 'is binary: publish the bytes alone, or as base64'
  // Map, Set, Error, RegExp, URLSearchParams …: what they hold is not in members of their own, so JSON makes {} of them.
  const tag = Object.prototype.toString.call(value).slice(8, -1)
  if (tag !== 'Object' && tag !== 'Array' && !hasToJson(value))
    return `is of type ${tag}, which JSON would lose`
  return null
}

function hasToJson(value: object): value is { toJSON(): unknown } {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function'
}
