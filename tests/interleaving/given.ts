import { idOf } from './books.ts'
import type { Given } from './terms.ts'

/** Fresh. */
export const message = (number: number): Given => live(number, null, false)

/** As a retried one is: in the due lane, and due. */
export const dueMessage = (number: number): Given => live(number, null, true)

/** One whose last delivery ended without an outcome. */
export const suspect = (number: number): Given => ({ ...live(number, null, false), silent: 1 })

/** One whose time has come. */
export const timer = (number: number, name: string): Given => live(number, name, true)

function live(number: number, name: string | null, isDue: boolean): Given {
  return { place: 'live', id: idOf(number), timer: name, isDue }
}

export function deadLetter(place: 'dead' | 'quarantined', number: number, name: string | null = null): Given {
  return { place, id: idOf(number), timer: name, isDue: false }
}
