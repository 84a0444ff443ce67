import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { suggest } from './suggest.ts'

const letters = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzABCDEF_-')
const word = fc.string({ unit: letters, minLength: 5, maxLength: 20 })

/** A word and the same word after one typing error: a letter missing, added, wrong, or two swapped. */
const mistyped = fc
  .tuple(word, fc.nat(), letters, fc.constantFrom('delete', 'insert', 'replace', 'swap'))
  .map(([name, place, letter, edit]) => {
    const at = place % name.length
    const after = name.slice(at + 1)
    const given = {
      delete: name.slice(0, at) + after,
      insert: name.slice(0, at) + letter + name.slice(at),
      replace: name.slice(0, at) + letter + after,
      swap: name.slice(0, at) + after.slice(0, 1) + name.charAt(at) + after.slice(1),
    }
    return { name, given: given[edit as keyof typeof given] }
  })

describe('suggest', () => {
  test('finds every name of five or more letters after one typing error', () => {
    fc.assert(
      fc.property(mistyped, ({ name, given }) => {
        expect(suggest(given, ['something-else-entirely', name])).toBe(name)
      }),
      { numRuns: 500 },
    )
  })

  test.each([
    ['concurency', ['concurrency', 'leaseMs'], 'concurrency'],
    ['LEASEMS', ['concurrency', 'leaseMs'], 'leaseMs'],
    ['odrers', ['orders', 'emails'], 'orders'],
    ['ordre', ['orders', 'order'], 'order'],
    ['kye', ['key', 'at'], 'key'],
  ])('%s among %j means %s', (given, known, meant) => {
    expect(suggest(given, known)).toBe(meant)
  })

  test.each([
    ['invoices', ['orders', 'emails'], 'nothing is near'],
    ['abcd', ['abxy'], 'two edits of a word under five letters are another word'],
    ['orders', [], 'nothing is known'],
    ['', ['orders'], 'nothing was given'],
  ])('%j among %j has no suggestion: %s', (given, known) => {
    expect(suggest(given, known)).toBeUndefined()
  })

  test('the nearest of several wins, whatever their order', () => {
    expect(suggest('orderz', ['borders', 'orders'])).toBe('orders')
    expect(suggest('orderz', ['orders', 'borders'])).toBe('orders')
  })
})
