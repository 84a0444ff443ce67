import { type BodyRules, writeBody } from './body.ts'
import {
  contentTypeHeader,
  correlationIdHeader,
  headersToStore,
  readHeaders,
  sourceHeader,
  takeOwn,
} from './headers.ts'
import type { Draft } from './message.ts'
import { assertPublishOptions, type PublishOptions } from './publish-options.ts'
import { assertQueue } from './queue-name.ts'
import { resolveSchedule } from './schedule.ts'

/** What an outbox knows about all its messages. */
export interface DraftRules extends BodyRules {
  readonly generation: number | null
  /** The header `source` of messages that have none; null: none. */
  readonly source: string | null
  readonly newId: () => string
}

/** What the caller asked to publish, as it was given. */
export interface Publication {
  readonly queue: string
  readonly body: unknown
  readonly options: PublishOptions | undefined
}

/**
 * Validates and encodes one message, in one fixed order for every way of publishing: queue, options, time, headers, body,
 * size, schema. Everything is refused here, before any SQL: an error inside the caller's transaction would
 * take the caller's own rows with it.
 */
export async function makeDraft(rules: DraftRules, { queue, body, options }: Publication): Promise<Draft> {
  assertQueue(queue, rules.queues)
  assertPublishOptions(options)
  const schedule = resolveSchedule(options?.delayMs, options?.at)
  const headers = readHeaders(options?.headers)
  const label = takeOwn(headers, contentTypeHeader, options?.contentType)
  const correlationId = takeOwn(headers, correlationIdHeader, options?.correlationId)
  if (rules.source !== null) addHeaders(headers, [[sourceHeader, rules.source]])
  // Read before anything is awaited: the caller may use the object for its next message meanwhile.
  const own = {
    id: options?.id?.toLowerCase() ?? rules.newId(),
    queue,
    key: options?.key ?? null,
    timerId: options?.timerId ?? null,
    conflict: options?.timerId === undefined ? 'none' : (options.onConflict ?? 'keep'),
    schedule,
    generation: rules.generation,
  } as const
  const stored = await writeBody(rules, { queue, body, label })
  if (stored.contentType !== null) headers.set(contentTypeHeader, stored.contentType)
  if (correlationId !== undefined) headers.set(correlationIdHeader, correlationId)
  return { ...own, body: stored.bytes, headers: headersToStore(headers, rules.maxBodyBytes) }
}

/** Adds what is not there. Names are compared whatever their case: a consumer must not find two that say different things. */
export function addHeaders(headers: Map<string, string>, added: Iterable<readonly [string, string]>): void {
  const taken = new Set([...headers.keys()].map((name) => name.toLowerCase()))
  for (const [name, value] of added) if (!taken.has(name.toLowerCase())) headers.set(name, value)
}
