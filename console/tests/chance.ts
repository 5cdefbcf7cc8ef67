/** Numbers as if by chance, the same in every run. */

export class Chance {
  constructor(private seed: number) {}

  /** A number from 0 to below 1. */
  part(): number {
    this.seed = (this.seed + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  between(least: number, most: number): number {
    return least + this.part() * (most - least)
  }

  /** A whole number, either end included. */
  whole(least: number, most: number): number {
    return Math.floor(this.between(least, most + 1))
  }

  one<T>(items: readonly T[]): T {
    return items[this.whole(0, items.length - 1)]!
  }

  shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => [this.part(), item] as const)
      .sort(([one], [other]) => one - other)
      .map(([, item]) => item)
  }
}
