import { afterEach, describe, expect, test } from 'vitest'
import { createOutbox } from '../outbox.ts'
import { createTestOutbox } from './create-test-outbox.ts'
import type { TestOutbox } from './test-outbox.ts'

const day = 86_400_000
const id = '01890000-0000-7000-8000-00000000000a'
let box: TestOutbox

afterEach(() => box.dispose())

describe.each(['sync', 'loop'] as const)('the inbox of a test outbox in mode %s', (mode) => {
  const outbox = createOutbox({ logger: false })
  const billing = { consumer: 'billing', id: 'order-1' }
  const once = (given: object = {}) =>
    box.transaction((tx) => outbox.inbox.once(tx, { ...billing, ...given }, () => 'done'))

  test('a message that is delivered twice has one effect', async () => {
    box = await createTestOutbox(outbox, { mode })
    const results: unknown[] = []
    const bill = async (message: { readonly id: string }): Promise<void> => {
      await box.transaction(async (tx) => {
        const work = () => outbox.publish(tx, 'invoices', message.id)
        results.push(await outbox.inbox.once(tx, { consumer: 'billing', id: message.id }, work))
      })
    }
    outbox.subscribe('orders', bill)
    for (let n = 0; n < 2; n++) await outbox.publishNow('orders', n, { id })
    await box.drain()

    expect(results).toMatchObject([{ ran: true }, { ran: false, because: 'duplicate' }])
    expect(box.published('invoices')).toMatchObject([{ body: id }])
  })

  test('what is rolled back was not handled', async () => {
    box = await createTestOutbox(outbox, { mode })
    await box.transaction(async (tx) => {
      await outbox.inbox.once(tx, billing, () => 'done')
      tx.rollback()
    })

    expect(await once()).toEqual({ ran: true, value: 'done' })
    expect(await once()).toEqual({ ran: false, because: 'duplicate' })
  })

  test('a message in another transaction’s hands is busy, at once or when the test’s time is over', async () => {
    box = await createTestOutbox(outbox, { mode })
    await box.transaction(async (tx) => {
      await outbox.inbox.once(tx, billing, () => 'done')
      expect(await once({ lockMs: 0 })).toEqual({ ran: false, because: 'busy' })
      const waiting = once()
      await box.advance(1_000)
      expect(await waiting).toEqual({ ran: false, because: 'busy' })
    })
  })

  test('whoever waits for another transaction goes on when it ends, though no time passes', async () => {
    box = await createTestOutbox(outbox, { mode })
    let waiting: Promise<unknown> = Promise.resolve()
    await box.transaction(async (tx) => {
      await outbox.inbox.once(tx, billing, () => 'done')
      waiting = once()
      await box.advance(0)
      tx.rollback()
    })

    expect(await waiting).toEqual({ ran: true, value: 'done' })
  })

  test('what was handled is forgotten by the test’s clock', async () => {
    box = await createTestOutbox(outbox, { mode })
    await once()
    await box.advance(7 * day)
    await once({ id: 'order-2' })
    await box.advance(day)

    expect(await outbox.inbox.purge({ olderThanMs: 7 * day })).toEqual({ purged: 1 })
    expect(await once()).toMatchObject({ ran: true })
    expect(await once({ id: 'order-2' })).toMatchObject({ ran: false })
  })

  test('in a transaction that is no test’s own it counts as handled at once, unless the work throws', async () => {
    box = await createTestOutbox(outbox, { mode })
    const standIn = { insert: () => {} } as never
    const failing = outbox.inbox.once(standIn, billing, () => Promise.reject(new Error('mine')))

    await expect(failing).rejects.toThrow('mine')
    expect(await outbox.inbox.once(standIn, billing, () => 'done')).toMatchObject({ ran: true })
    expect(await once()).toEqual({ ran: false, because: 'duplicate' })
  })
})
