import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createOrder, type Place } from './order.ts'

type Change =
  | { readonly kind: 'add'; readonly at: number }
  | { readonly kind: 'remove'; readonly nth: number }

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({
    kind: fc.constant('add' as const),
    at: fc.constantFrom(-1, 0, 0.5, 1, Number.POSITIVE_INFINITY),
  }),
  fc.record({ kind: fc.constant('remove' as const), nth: fc.nat(100) }),
)

/** The same, the slow way. */
function above(places: readonly Place[], from: Place): readonly number[] {
  return places
    .filter(({ at, seq }) => at > from.at || (at === from.at && seq > from.seq))
    .toSorted((a, b) => (a.at === b.at ? a.seq - b.seq : a.at - b.at))
    .map(({ seq }) => seq)
}

test('an order gives what was added and not removed, from any place on', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 300, size: 'max' }), fc.nat(300), (changes, from) => {
      const order = createOrder()
      const places: Place[] = []
      let seq = 0
      for (const change of changes) {
        if (change.kind === 'add') {
          const place = { at: change.at, seq: ++seq }
          order.add(place)
          places.push(place)
        } else if (places.length > 0) {
          const [removed] = places.splice(change.nth % places.length, 1)
          order.remove(removed?.seq ?? 0)
        }
      }
      for (const at of [Number.NEGATIVE_INFINITY, -1, 0, 1]) {
        const place = { at, seq: from }
        expect([...order.above(place)]).toEqual(above(places, place))
      }
    }),
  )
})

test('a message may come back to its old place, among the gaps of others', () => {
  const order = createOrder()
  for (let seq = 1; seq <= 100; seq++) order.add({ at: 0, seq })
  for (let seq = 1; seq <= 100; seq++) if (seq !== 50) order.remove(seq)
  for (let times = 0; times < 3; times++) {
    order.remove(50)
    order.add({ at: 0, seq: 50 })
  }
  order.remove(1)
  order.add({ at: 0, seq: 7 })

  expect([...order.above({ at: 0, seq: 0 })]).toEqual([7, 50])
})
