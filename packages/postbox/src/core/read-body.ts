import { type BodyRules, codecOf, invalidBody, type StoredBody, schemaOf } from './body-rules.ts'
import { decodeBody } from './decode-body.ts'
import { describeIssues } from './describe-issues.ts'
import { errorText } from './error-text.ts'
import { show } from './show.ts'
import type { SchemaResult, StandardSchema } from './standard-schema.ts'
import { isThenable } from './thenable.ts'
import { isRecord } from './validate.ts'

/** What the handler gets for these bytes: decoded, and put through the queue's schema (its output, not its input). */
export async function readBody(rules: BodyRules, queue: string, stored: StoredBody): Promise<unknown> {
  return readBodyNow(rules, queue, stored)
}

/** The same without waiting, which is the rule: a promise only of what has to be waited for, a schema that asks somebody else. */
export function readBodyNow(rules: BodyRules, queue: string, stored: StoredBody): unknown {
  const value = decodeStored(rules, queue, stored)
  const schema = schemaOf(rules, queue)
  return schema === null ? value : validated(schema, queue, value)
}

/** The value of stored bytes, before any schema. */
export function decodeStored(rules: BodyRules, queue: string, stored: StoredBody): unknown {
  try {
    return decodeBody(stored.bytes, stored.contentType, codecOf(rules, queue))
  } catch (cause) {
    const type = stored.contentType ?? 'JSON'
    const problem = `${stored.bytes.byteLength} bytes cannot be decoded as ${type} (${errorText(cause)})`
    throw invalidBody(queue, problem, cause)
  }
}

function validated(schema: StandardSchema, queue: string, value: unknown): unknown {
  const threw = (cause: unknown): never => {
    throw invalidBody(queue, `its schema threw ${show(errorText(cause))} for ${show(value)}`, cause)
  }
  const answered = (result: unknown): unknown => outputOf(result, queue, value)
  let result: unknown
  try {
    result = schema['~standard'].validate(value)
    if (isThenable(result)) return Promise.resolve(result).catch(threw).then(answered)
  } catch (cause) {
    threw(cause)
  }
  return answered(result)
}

function outputOf(result: unknown, queue: string, value: unknown): unknown {
  if (!isRecord(result)) throw invalidBody(queue, `its schema answered ${show(result)} for ${show(value)}`)
  const answer = result as unknown as SchemaResult<unknown>
  if (answer.issues === undefined) return answer.value
  throw invalidBody(queue, `${describeIssues(answer.issues)}: got ${show(value)}`)
}
