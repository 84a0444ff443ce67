import { describe, expect, onTestFinished, test } from 'vitest'
import { stealLease } from '../../../../tests/support/steal-lease.ts'
import { LeaseLostError, type OutboxEvent } from '../index.ts'
import { constant } from '../policies.ts'
import { createTestOutbox } from './create-test-outbox.ts'
import type { TestTransaction } from './test-transaction.ts'

const hour = 3_600_000
const patient = { retry: constant({ delayMs: hour }) }

describe.each(['sync', 'loop'] as const)('context.transaction in mode %s', (mode) => {
  async function testOutbox() {
    const told: OutboxEvent[] = []
    const options = { logger: false, onEvent: (event: OutboxEvent) => void told.push(event) } as const
    const test = await createTestOutbox(options, { mode })
    onTestFinished(test.dispose)
    const publish = async (): Promise<void> => {
      await test.outbox.publishNow('orders', 1)
      await test.drain()
    }
    return { test, outbox: test.outbox, publish, told }
  }

  test('ends the message with what it publishes, which is delivered then', async () => {
    const { test, outbox, publish, told } = await testOutbox()
    const emails: unknown[] = []
    outbox.subscribe('orders', (_, context) =>
      context.transaction(async (tx) => {
        await context.publish('emails', 'by the context')
        await outbox.publish(tx as TestTransaction, 'emails', 'by the handle')
      }),
    )
    outbox.subscribe('emails', ({ body }) => void emails.push(body))
    await publish()

    expect(emails.toSorted()).toEqual(['by the context', 'by the handle'])
    expect(test.pending()).toEqual([])
    expect(told.filter(({ kind }) => kind === 'acked')).toHaveLength(3)
  })

  test('that fails leaves nothing but the message', async () => {
    const { test, outbox, publish } = await testOutbox()
    outbox.subscribe(
      'orders',
      (_, context) =>
        context.transaction(async (tx) => {
          void context.publish('emails', 1)
          await outbox.publish(tx as TestTransaction, 'emails', 2)
          throw new Error('no')
        }),
      patient,
    )
    await publish()

    expect(test.pending()).toMatchObject([{ queue: 'orders', attempts: 1 }])
  })

  test('is refused to a stale lease', async () => {
    const { outbox, publish } = await testOutbox()
    const refusals: unknown[] = []
    outbox.subscribe('orders', async ({ seq }, { transaction }) => {
      stealLease(outbox, seq)
      await transaction(() => expect.fail('it was run')).catch((error) => refusals.push(error))
    })
    await publish()

    expect(refusals).toEqual([expect.any(LeaseLostError)])
  })

  test('is doomed when its time is over', async () => {
    const { test, outbox } = await testOutbox()
    const ends: unknown[] = []
    outbox.subscribe(
      'orders',
      (_, { transaction, signal }) =>
        transaction(async (tx) => {
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          await test.advance(1_000)
          await outbox.publish(tx as TestTransaction, 'emails', 1).catch((error) => ends.push(error))
        }),
      { ...patient, timeoutMs: 1_000 },
    )
    const published = outbox.publishNow('orders', 1)
    await test.advance(1_000)
    await test.advance(1_000)
    await published

    expect(test.pending()).toMatchObject([{ queue: 'orders', attempts: 1 }])
  })
})
