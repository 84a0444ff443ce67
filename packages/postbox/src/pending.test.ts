import { describe, expect, test } from 'vitest'
import type { BodyRules } from './core/body-rules.ts'
import { pendingMessage } from './pending.ts'
import type { PendingRow } from './sql/peek-pending.ts'

const rules: BodyRules = { queues: null, codec: undefined, maxBodyBytes: 100 }

const row: PendingRow = {
  id: '0190163d-8694-739b-9aea-966c26f8ad91',
  seq: '7',
  queue: 'orders',
  key: 'customer-7',
  timer: 'reminder',
  body: Buffer.from('{"orderId":1}').toString('base64'),
  headers: '{"correlation-id": "c"}',
  attempts: '2',
  deliveries: '3',
  created: '1700000000123.456000',
  due: '1700000001000.000000',
  leased: 'true',
  generation: '4',
}

describe('pendingMessage', () => {
  test('makes numbers, dates, bytes and truths of the texts of a row', () => {
    expect(pendingMessage(rules, row)).toEqual({
      id: row.id,
      seq: '7',
      queue: 'orders',
      key: 'customer-7',
      timerId: 'reminder',
      body: { orderId: 1 },
      headers: { 'correlation-id': 'c' },
      correlationId: 'c',
      attempts: 2,
      deliveries: 3,
      createdAt: new Date(1_700_000_000_123),
      dueAt: new Date(1_700_000_001_000),
      inFlight: true,
      generation: 4,
      raw: Buffer.from('{"orderId":1}'),
    })
  })

  test('what the row has not is null, and the text false is not true', () => {
    const bare = {
      ...row,
      key: null,
      timer: null,
      headers: null,
      due: null,
      leased: 'false',
      generation: null,
    }

    expect(pendingMessage(rules, bare)).toMatchObject({
      key: null,
      timerId: null,
      headers: {},
      correlationId: row.id,
      dueAt: null,
      inFlight: false,
      generation: null,
    })
  })

  test('bytes that cannot be decoded are shown raw', () => {
    const broken = pendingMessage(rules, { ...row, body: Buffer.from('{').toString('base64') })

    expect(broken).toMatchObject({ body: undefined, raw: Buffer.from('{') })
  })
})
