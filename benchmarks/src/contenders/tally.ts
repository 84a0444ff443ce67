/** How often each message was handled. One byte each: a million of them must not be what fills the heap that is measured. */
export class Tally {
  readonly #times: Uint8Array
  #handled = 0

  constructor(messages: number) {
    this.#times = new Uint8Array(messages)
  }

  get handled(): number {
    return this.#handled
  }

  has(n: number): boolean {
    return this.#times[n]! > 0
  }

  /** How often it has been handled by now. */
  add(n: number): number {
    this.#handled += 1
    this.#times[n]! += 1
    return this.#times[n]!
  }

  toText(): string {
    return Buffer.from(this.#times.buffer).toString('base64')
  }
}

/** Counts messages that come after a later one of their key. */
export class OrderCheck {
  readonly #keys: number
  readonly #last: Int32Array
  #disordered = 0

  constructor(keys: number) {
    this.#keys = keys
    this.#last = new Int32Array(keys).fill(-1)
  }

  get disordered(): number {
    return this.#disordered
  }

  see(n: number): void {
    const key = n % this.#keys
    if (n < this.#last[key]!) this.#disordered += 1
    else this.#last[key] = n
  }
}

export interface Miscount {
  readonly missing: number
  readonly repeated: number
}

/** null: each message was handled as often as it should have been, by all processes together. */
export function miscountOf(tallies: readonly string[], times = 1): Miscount | null {
  const counts = tallies.map((text) => Buffer.from(text, 'base64'))
  let missing = 0
  let repeated = 0
  for (let n = 0; n < (counts[0]?.length ?? 0); n += 1) {
    let sum = 0
    for (const count of counts) sum += count[n]!
    if (sum < times) missing += 1
    if (sum > times) repeated += 1
  }
  return missing + repeated === 0 ? null : { missing, repeated }
}
