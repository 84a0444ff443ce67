import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { describeIssues } from './describe-issues.ts'
import { defineQueues, isOrdered, isTypeOnly, typed } from './queues.ts'
import { isStandardSchema, type SchemaIssue } from './standard-schema.ts'

describe('queues', () => {
  test('defineQueues gives the same map, frozen', () => {
    const map = { orders: {} }

    expect(defineQueues(map)).toBe(map)
    expect(Object.isFrozen(map)).toBe(true)
  })

  test('a type is a schema that accepts everything and is told from a real one', () => {
    expect(typed<number>()['~standard'].validate('anything')).toEqual({ value: 'anything' })
    expect(isTypeOnly(typed<number>())).toBe(true)
    expect(isTypeOnly(z.number())).toBe(false)
  })

  test('a queue is ordered when its own definition says so', () => {
    const map = { orders: { order: 'key' }, mails: { order: 'none' }, letters: {} } as const

    expect(
      ['orders', 'mails', 'letters', 'toString', '__proto__'].map((queue) => isOrdered(map, queue)),
    ).toEqual([true, false, false, false, false])
    expect(isOrdered(null, 'orders')).toBe(false)
    expect(isOrdered(Object.create({ orders: { order: 'key' } }), 'orders')).toBe(false)
  })
})

describe('isStandardSchema', () => {
  test.each([z.number(), v.number(), type('number'), typed<number>()])(
    'knows a schema (case %#)',
    (schema) => {
      expect(isStandardSchema(schema)).toBe(true)
    },
  )

  test.each([
    null,
    undefined,
    'number',
    7,
    {},
    () => {},
    { '~standard': null },
    { '~standard': {} },
    { '~standard': 'x' },
  ])('knows what is none (case %#)', (value) => {
    expect(isStandardSchema(value)).toBe(false)
  })
})

describe('describeIssues', () => {
  test.each<[SchemaIssue[], string]>([
    [[{ message: 'required' }], 'required'],
    [[{ message: 'required', path: [] }], 'required'],
    [[{ message: 'required', path: ['orderId'] }], 'orderId: required'],
    [[{ message: 'bad', path: ['lines', 0, 'sku'] }], 'lines[0].sku: bad'],
    [[{ message: 'bad', path: [{ key: 'lines' }, { key: 0 }, { key: 'sku' }] }], 'lines[0].sku: bad'],
    [[{ message: 'bad', path: [0, Symbol('s')] }], '[0].Symbol(s): bad'],
    [[{ message: 'a' }, { message: 'b', path: ['x'] }], 'a; x: b'],
  ])('writes paths as they are read (case %#)', (issues, text) => {
    expect(describeIssues(issues)).toBe(text)
  })

  test('five issues are enough', () => {
    const issues = Array.from({ length: 100 }, (_, index) => ({ message: `m${index}` }))

    expect(describeIssues(issues)).toBe('m0; m1; m2; m3; m4')
  })
})
