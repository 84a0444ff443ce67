import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isUuid, uuidV7 } from './uuid.ts'

const random = fc.uuid({ version: 4 })
const epoch = fc.integer({ min: 0, max: 2 ** 48 - 1 })

describe('uuidV7', () => {
  test('is always canonical, of version 7 and variant 10', () => {
    fc.assert(
      fc.property(epoch, random, (epochMs, v4) => {
        expect(uuidV7(epochMs, v4)).toMatch(
          /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
        )
      }),
    )
  })

  test('carries the whole millisecond, up to the last of its 48 bits', () => {
    fc.assert(
      fc.property(epoch, random, (epochMs, v4) => {
        const head = uuidV7(epochMs, v4).replaceAll('-', '').slice(0, 12)

        expect(Number.parseInt(head, 16)).toBe(epochMs)
      }),
    )
  })

  test('sorts as text by its time, whatever the randomness', () => {
    fc.assert(
      fc.property(epoch, epoch, fc.tuple(random, random), (a, b, [first, second]) => {
        fc.pre(a !== b)

        expect(uuidV7(a, first) < uuidV7(b, second)).toBe(a < b)
      }),
    )
  })

  test('keeps all 74 random bits of a version 4 UUID', () => {
    fc.assert(
      fc.property(epoch, random, (epochMs, v4) => {
        expect(uuidV7(epochMs, v4).slice(15)).toBe(v4.slice(15))
      }),
    )
    expect(uuidV7(0, 'ffffffff-ffff-4fff-bfff-ffffffffffff')).toBe('00000000-0000-7fff-bfff-ffffffffffff')
  })

  test('a fraction of a millisecond is cut off', () => {
    const v4 = '0190163d-8694-439b-9aea-966c26f8ad91'

    expect(uuidV7(1.9, v4)).toBe(uuidV7(1, v4))
  })
})

describe('isUuid', () => {
  test('accepts every uuid, of any version and in either case', () => {
    fc.assert(
      fc.property(fc.uuid(), (id) => {
        expect([isUuid(id), isUuid(id.toUpperCase())]).toEqual([true, true])
      }),
    )
    expect(isUuid('00000000-0000-0000-0000-000000000000')).toBe(true)
  })

  test.each([
    ['', 'empty'],
    ['0190163d8694739b9aea966c26f8ad91', 'without hyphens, which Postgres would take'],
    ['{0190163d-8694-739b-9aea-966c26f8ad91}', 'in braces, which Postgres would take'],
    ['0190163d-8694-739b-9aea-966c26f8ad9', 'a digit short'],
    ['0190163d-8694-739b-9aea-966c26f8ad910', 'a digit long'],
    ['0190163d-8694-739b-9aea-966c26f8ad91\n', 'with a line break at the end'],
    ['0190163d-8694-739b-9aea-966c26f8ad9g', 'with a letter that is no digit'],
    [null, 'null'],
    [7, 'a number'],
    [['0190163d-8694-739b-9aea-966c26f8ad91'], 'an array that prints as one'],
  ])('refuses %j: %s', (value, _why) => {
    expect(isUuid(value)).toBe(false)
  })
})
