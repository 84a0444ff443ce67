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
    const found = findProblem(value, { path: '', lossy, above: [] })
    if (found !== null) return { ok: false, ...found }
    const text = JSON.stringify(value)
    if (text === undefined) return { ok: false, path: 'body', problem: 'is undefined after toJSON()' }
    return { ok: true, text }
  } catch (error) {
    return { ok: false, path: 'body', problem: `cannot be read: ${errorText(error)}` }
  }
}

interface Place {
  readonly path: string
  readonly lossy: 'refuse' | 'allow'
  readonly above: readonly object[]
}

interface Problem {
  readonly path: string
  readonly problem: string
}

function findProblem(value: unknown, place: Place): Problem | null {
  const problem = problemOf(value, place)
  if (problem !== null) return { path: place.path === '' ? 'body' : `body${place.path}`, problem }
  if (typeof value !== 'object' || value === null) return null
  const inner = { lossy: place.lossy, above: [...place.above, value] }
  const json: unknown = hasToJson(value) ? value.toJSON() : value
  if (json !== value) return findProblem(json, { ...inner, path: place.path })
  if (Array.isArray(value)) {
    // Not `entries()` of a sparse array's keys: a hole becomes null in JSON, so it must be seen as undefined.
    for (let index = 0; index < value.length; index++) {
      const found = findProblem(value[index], { ...inner, path: `${place.path}[${index}]` })
      if (found !== null) return found
    }
    return null
  }
  for (const [key, member] of Object.entries(value)) {
    // `{ note: undefined }` is how TypeScript spells an absent member, and JSON leaves it out: nothing is lost.
    if (member === undefined) continue
    const found = findProblem(member, { ...inner, path: `${place.path}.${key}` })
    if (found !== null) return found
  }
  return null
}

function problemOf(value: unknown, place: Place): string | null {
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
      return value === null ? null : objectProblem(value, place)
    default:
      return null
  }
}

function objectProblem(value: object, { lossy, above }: Place): string | null {
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
