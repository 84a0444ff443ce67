import { readBody } from '../core/body.ts'
import { contentTypeHeader, correlationIdHeader } from '../core/headers.ts'
import type { Lease } from '../core/lease.ts'
import type { Message } from '../core/message.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Subscription } from './subscription.ts'

/** Decodes the body, runs the handler. Whatever is thrown, by either, is the delivery's outcome and never an exception. */
export async function deliver(
  lease: Lease,
  subscription: Subscription,
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    const message = await messageOf(lease, subscription)
    await subscription.handler(message, { signal })
    return { kind: 'ack' }
  } catch (error) {
    return { kind: 'fail', error }
  }
}

async function messageOf(lease: Lease, { rules, queue }: Subscription): Promise<Message> {
  const contentType = lease.headers[contentTypeHeader] ?? null
  const body = await readBody(rules, queue, { bytes: lease.body, contentType })
  return Object.freeze({
    id: lease.id,
    seq: lease.seq,
    queue: lease.queue,
    key: lease.key,
    body,
    headers: lease.headers,
    correlationId: lease.headers[correlationIdHeader] ?? lease.id,
    attempt: lease.attempt,
    deliveries: lease.deliveries,
    createdAt: lease.createdAt,
    generation: lease.generation,
    raw: lease.body,
  })
}
