const canonical = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){4}[0-9a-f]{8}$/i

export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && canonical.test(value)
}

/**
 * A version 7 UUID: 48 bits of milliseconds, then the 74 random bits that lie at the same places of a version 4 one. Made by the client, so that
 * a publisher whose commit answer was lost can recognise its own message, and sorted roughly by time for people who read logs.
 */
export function uuidV7(epochMs: number, random: string): string {
  if (epochMs !== last.epochMs) last = { epochMs, text: timeText(epochMs) }
  return last.text + random.slice(15)
}

// Messages of a batch have it in common, and to write it takes longer than all the rest of an id.
let last = { epochMs: 0, text: timeText(0) }

function timeText(epochMs: number): string {
  const time = Math.floor(epochMs).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7`
}
