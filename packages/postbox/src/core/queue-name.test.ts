import { describe, expect, test } from 'vitest'
import { assertQueue } from './queue-name.ts'

const known = { orders: {}, emails: {} }

describe('assertQueue', () => {
  test('without a list of queues any storable name passes', () => {
    expect(() => assertQueue('anything at all; drop table x --', null)).not.toThrow()
  })

  test('255 bytes pass and 256 do not, however few characters they are', () => {
    expect(() => assertQueue('x'.repeat(255), null)).not.toThrow()
    expect(() => assertQueue(`${'😀'.repeat(63)}xyz`, null)).not.toThrow()
    expect(() => assertQueue('😀'.repeat(64), null)).toThrow(
      expect.objectContaining({ code: 'OUTBOX_INVALID_QUEUE' }),
    )
  })

  // U-PUB-17
  test.each([['', 'x'.repeat(256), undefined, null, 7, {}, ['orders'], 'a\u0000b', 'a\ud83d']].flat())(
    '%j is no queue',
    (queue) => {
      expect(() => assertQueue(queue, null)).toThrow(
        expect.objectContaining({ code: 'OUTBOX_INVALID_QUEUE' }),
      )
    },
  )

  test('with a list only its own names pass', () => {
    expect(() => assertQueue('orders', known)).not.toThrow()
    expect(() => assertQueue('ordres', known)).toThrow(
      'no queue is named `"ordres"` (string): did you mean "orders"?',
    )
    expect(() => assertQueue('invoices', known)).toThrow('known are: orders, emails')
    expect(() => assertQueue('invoices', {})).toThrow('known are: none')
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    '%s is not found on the prototype',
    (queue) => {
      expect(() => assertQueue(queue, known)).toThrow(
        expect.objectContaining({ code: 'OUTBOX_UNKNOWN_QUEUE' }),
      )
    },
  )

  test('a queue that is really called __proto__ is found', () => {
    expect(() => assertQueue('__proto__', { ['__proto__']: {} })).not.toThrow()
  })

  test('a bad name is told before an unknown one', () => {
    expect(() => assertQueue('', known)).toThrow(expect.objectContaining({ code: 'OUTBOX_INVALID_QUEUE' }))
  })
})
