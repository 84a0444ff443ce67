import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type FirstSeen, horizonOf, parseSnapshot } from './horizon.ts'

const nobody: FirstSeen = new Map()

/** The horizon of a snapshot's text, looked at at that time. */
const horizonAt = (nowMs: number, text: string, before: FirstSeen = nobody) =>
  horizonOf(parseSnapshot(text), before, nowMs)

/** What is remembered after looks at these times, one after the other. */
function remembered(...looks: readonly (readonly [nowMs: number, text: string])[]): FirstSeen {
  return looks.reduce((before, [nowMs, text]) => horizonAt(nowMs, text, before).firstSeen, nobody)
}

describe('parseSnapshot', () => {
  test.each([
    ['743:743:', { xmin: 743n, xmax: 743n, running: [] }],
    ['743:745:743', { xmin: 743n, xmax: 745n, running: [743n] }],
    ['10:20:10,14,15', { xmin: 10n, xmax: 20n, running: [10n, 14n, 15n] }],
    // xid8: beyond 32 bits after the first wrap-around, beyond what a number holds exactly after many.
    [
      '18446744073709551613:18446744073709551615:18446744073709551613',
      { xmin: 18446744073709551613n, xmax: 18446744073709551615n, running: [18446744073709551613n] },
    ],
  ])('%s is read', (text, snapshot) => {
    expect(parseSnapshot(text)).toEqual(snapshot)
  })

  test('every list of running transactions is read, in its order', () => {
    const xid = fc.bigInt({ min: 3n, max: 2n ** 64n - 1n })

    fc.assert(
      fc.property(xid, xid, fc.array(xid), (xmin, xmax, running) => {
        expect(parseSnapshot(`${xmin}:${xmax}:${running.join(',')}`)).toEqual({ xmin, xmax, running })
      }),
    )
  })
})

describe('horizonOf', () => {
  test('without running transactions both horizons are at the end of the snapshot', () => {
    expect(horizonAt(0, '20:20:')).toEqual({ patient: 20n, strict: 20n, firstSeen: new Map() })
  })

  test('transactions that have just appeared hold both horizons at the oldest of them', () => {
    expect(horizonAt(0, '10:20:10,14,15')).toMatchObject({ patient: 10n, strict: 10n })
  })

  // Postgres sorts the list; we do not rely on it.
  test('the oldest is told by its number, not by its place in the list', () => {
    expect(horizonAt(0, '10:20:15,10,14').patient).toBe(10n)
  })

  test('a transaction that was first seen 249 ms ago still holds the patient horizon', () => {
    const before = remembered([1_000, '10:20:10'])

    expect(horizonAt(1_249, '10:30:10', before)).toMatchObject({ patient: 10n, strict: 10n })
  })

  test('a transaction that was first seen 250 ms ago holds the strict horizon only', () => {
    const before = remembered([1_000, '10:20:10'])

    expect(horizonAt(1_250, '10:30:10', before)).toMatchObject({ patient: 30n, strict: 10n })
  })

  test('a young transaction holds the patient horizon beside an old one, older or younger than it by number', () => {
    const before = remembered([0, '12:20:12'])

    expect(horizonAt(250, '12:30:12,25', before)).toMatchObject({ patient: 25n, strict: 12n })
    expect(horizonAt(250, '11:30:11,12', before)).toMatchObject({ patient: 11n, strict: 11n })
  })

  // Counted per look, one long writer would hold every cursor back for as long as it lives.
  test('the age counts from the first look that saw the transaction, not from the last', () => {
    const before = remembered([0, '10:20:10'], [100, '10:21:10'], [200, '10:22:10'])

    expect(horizonAt(250, '10:23:10', before).patient).toBe(23n)
  })

  test('each transaction has an age of its own', () => {
    const before = remembered([0, '10:20:10'], [200, '10:22:10,21'])

    expect(before).toEqual(
      new Map([
        [10n, 0],
        [21n, 200],
      ]),
    )
    expect(horizonAt(250, '10:23:10,21', before).patient).toBe(21n)
    expect(horizonAt(450, '10:23:10,21', before).patient).toBe(23n)
  })

  test('transactions that have ended are forgotten', () => {
    expect(remembered([0, '10:20:10,11,12'], [10, '12:20:12'])).toEqual(new Map([[12n, 0]]))
    expect(remembered([0, '10:20:10,11,12'], [10, '21:21:'])).toEqual(new Map())
  })

  test('a look changes nothing of what was remembered before it', () => {
    const before = remembered([0, '10:20:10'])
    horizonAt(10, '10:20:10,11', before)

    expect(before).toEqual(new Map([[10n, 0]]))
  })

  test('the strict horizon is never beyond the patient one, and neither is beyond the snapshot', () => {
    const ages = fc.uniqueArray(fc.tuple(fc.bigInt({ min: 3n, max: 99n }), fc.nat(500)), {
      selector: ([xid]) => xid,
    })

    fc.assert(
      fc.property(ages, (transactions) => {
        const running = transactions.map(([xid]) => xid).sort((a, b) => Number(a - b))
        const xmin = running[0] ?? 100n
        const firstSeen = new Map(transactions.map(([xid, age]) => [xid, 500 - age]))
        const { patient, strict } = horizonOf({ xmin, xmax: 100n, running }, firstSeen, 500)

        expect(strict).toBe(xmin)
        expect(patient >= strict && patient <= 100n).toBe(true)
        expect(transactions.every(([xid, age]) => age >= 250 || patient <= xid)).toBe(true)
      }),
    )
  })
})
