// Entries of who pauses the queue, and who resumes it. Pure.
import { type Booked, broken, type Entering, type Of } from './books.ts'

const promise = 'who pauses first stays recorded'

export function paused({ account, wasAlone }: Entering, { by, isDone }: Of<'paused'>): Booked {
  const { pausedBy } = account
  if (isDone && pausedBy !== null) return broken(promise, `${by} has paused what ${pausedBy} had`)
  if (!isDone && pausedBy === null && wasAlone)
    return broken('what is not paused can be paused', `${by} was told that it was`)
  return { account: isDone ? { ...account, pausedBy: by } : account }
}

export function resumed({ account, wasAlone }: Entering, { by, isDone }: Of<'resumed'>): Booked {
  const { pausedBy } = account
  if (isDone && pausedBy === null)
    return broken('what is paused is resumed once', `${by} has, and it was not`)
  if (!isDone && pausedBy !== null && wasAlone)
    return broken('what is paused can be resumed', `${by} was told that it was not`)
  return { account: isDone ? { ...account, pausedBy: null } : account }
}
