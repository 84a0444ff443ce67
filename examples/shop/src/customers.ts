import type { Ending } from './ending.ts'
import { importOrders } from './import-orders.ts'
import { pause } from './pause.ts'
import type { Fate, Visit } from './place-order.ts'
import { placeOrder } from './place-order.ts'
import type { Shop } from './shop.ts'

const customers = ['ada@example.com', 'grace@example.com', 'linus@example.com', 'margaret@example.com']
const items = ['teapot', 'lantern', 'atlas', 'kite', 'compass'] as const

// The fates of 20 visits; those not listed are paid. 3 of 20 are declined: 15 %.
const visitsInRound = 20
const unusualFates: Readonly<Record<number, Fate>> = {
  2: 'declined',
  5: 'coupon kept',
  9: 'declined',
  12: 'coupon withdrawn',
  16: 'declined',
}

/** Customers come, all at the same time, until the shop closes. Resolves when the last one has left. */
export async function serveCustomers(shop: Shop, ending: Ending): Promise<void> {
  let visits = 0
  // The first round is always served: a verdict on a shop without a declined order would prove nothing.
  const isOpen = (): boolean => !ending.closing.aborted || visits < visitsInRound

  const shopping = customers.map(async (customer) => {
    while (isOpen()) {
      await placeOrder(shop, nextVisit(customer, visits++))
      await pause(5 + 30 * Math.random(), ending.closing)
    }
  })
  await everybody([...shopping, importNowAndThen(shop, ending)], ending)
}

function nextVisit(customer: string, number: number): Visit {
  const item = items[number % items.length] ?? items[0]
  return { customer, item, fate: unusualFates[number % visitsInRound] ?? 'paid' }
}

async function importNowAndThen(shop: Shop, { closing }: Ending): Promise<void> {
  do {
    await importOrders(shop)
    await pause(3_000, closing)
  } while (!closing.aborted)
}

/** If one of them fails the shop closes, and the error is thrown when the others have left too. */
async function everybody(people: readonly Promise<void>[], ending: Ending): Promise<void> {
  for (const person of people) person.catch(() => ending.close())
  const left = await Promise.allSettled(people)
  for (const result of left) if (result.status === 'rejected') throw result.reason
}
