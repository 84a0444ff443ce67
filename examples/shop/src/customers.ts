import { goodAddress, islandAddress, wrongAddress } from './addresses.ts'
import { mendDeadLetters } from './clerk.ts'
import type { Ending } from './ending.ts'
import { importOrders } from './import-orders.ts'
import { payInvoice } from './invoices.ts'
import { pause } from './pause.ts'
import type { Fate, Visit } from './place-order.ts'
import { placeOrder } from './place-order.ts'
import type { Shop } from './shop.ts'

const customers = ['ada@example.com', 'grace@example.com', 'linus@example.com', 'margaret@example.com']
const items = ['teapot', 'lantern', 'atlas', 'kite', 'compass'] as const

// The fates of 20 visits; those not listed are paid at once. 3 of 20 are declined: 15 %.
const visitsInRound = 20
const unusualFates: Readonly<Record<number, Fate>> = {
  2: 'declined',
  5: 'coupon kept',
  7: 'wrong address',
  9: 'declined',
  11: 'invoice paid',
  12: 'coupon withdrawn',
  14: 'invoice unpaid',
  16: 'declined',
  17: 'island',
}

const unusualAddresses: Readonly<Partial<Record<Fate, string>>> = {
  'wrong address': wrongAddress,
  island: islandAddress,
}

/** Customers come, all at the same time, and a clerk mends what died, until the shop closes. Resolves when the last one has left. */
export async function serveCustomers(shop: Shop, ending: Ending): Promise<void> {
  let visits = 0
  // The first round is always served: a verdict on a shop without a declined order would prove nothing.
  const isOpen = (): boolean => !ending.closing.aborted || visits < visitsInRound

  const shopping = customers.map(async (customer) => {
    while (isOpen()) {
      const visit = nextVisit(customer, visits++)
      const orderId = await placeOrder(shop, visit)
      await pause(5 + 30 * Math.random(), ending.closing)
      if (orderId !== null && visit.fate === 'invoice paid') await payInvoice(shop, orderId)
    }
  })
  const importing = nowAndThen(3_000, () => importOrders(shop), ending)
  const mending = nowAndThen(2_000, () => mendDeadLetters(shop), ending)
  await everybody([...shopping, importing, mending], ending)
}

function nextVisit(customer: string, number: number): Visit {
  const item = items[number % items.length] ?? items[0]
  const fate = unusualFates[number % visitsInRound] ?? 'paid'
  return { customer, item, address: unusualAddresses[fate] ?? goodAddress, fate }
}

async function nowAndThen(everyMs: number, work: () => Promise<unknown>, { closing }: Ending): Promise<void> {
  do {
    await work()
    await pause(everyMs, closing)
  } while (!closing.aborted)
}

/** If one of them fails the shop closes, and the error is thrown when the others have left too. */
async function everybody(people: readonly Promise<void>[], ending: Ending): Promise<void> {
  for (const person of people) person.catch(() => ending.close())
  const left = await Promise.allSettled(people)
  for (const result of left) if (result.status === 'rejected') throw result.reason
}
