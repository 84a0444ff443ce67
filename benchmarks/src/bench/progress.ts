const width = 24

/** One line that is drawn anew on a terminal; elsewhere, a line for each run. On standard error: the results are what is printed. */
export class Progress {
  readonly #isTerminal = process.stderr.isTTY === true
  readonly #startedAt = performance.now()
  #done = 0
  readonly #all: number

  constructor(all: number) {
    this.#all = all
  }

  begin(what: string): void {
    const place = `${this.#done + 1}/${this.#all}`
    if (!this.#isTerminal) return
    const full = Math.round((width * this.#done) / this.#all)
    const bar = `${'█'.repeat(full)}${'░'.repeat(width - full)}`
    process.stderr.write(`\r\x1b[2K${bar} ${place} ${this.#seconds()} s ${what}`)
  }

  end(what: string): void {
    this.#done += 1
    if (!this.#isTerminal) process.stderr.write(`${this.#done}/${this.#all} ${this.#seconds()} s ${what}\n`)
  }

  close(): void {
    if (this.#isTerminal) process.stderr.write('\r\x1b[2K')
  }

  #seconds(): string {
    return ((performance.now() - this.#startedAt) / 1_000).toFixed(0)
  }
}
