/** What the tests use of Node. All its types are not wanted here: the console would be let use what no browser has. */

declare module 'node:test' {
  export interface TestContext {
    readonly mock: {
      readonly timers: {
        enable(options: { apis: ('setTimeout' | 'setInterval' | 'Date')[]; now?: number }): void
        tick(milliseconds: number): void
      }
    }
    after(tidy: () => void): void
  }

  export function test(name: string, run: (context: TestContext) => void | Promise<void>): void
}

declare module 'node:timers/promises' {
  export function setImmediate(): Promise<void>
}

declare module 'node:fs/promises' {
  export function readFile(path: URL, encoding: 'utf8'): Promise<string>
}

declare module 'node:assert/strict' {
  namespace assert {
    function ok(value: unknown, message?: string): asserts value
    function equal<T>(actual: T, expected: T, message?: string): void
    function notEqual<T>(actual: T, expected: T, message?: string): void
    function deepEqual<T>(actual: T, expected: T, message?: string): void
    function match(text: string, pattern: RegExp, message?: string): void
    function doesNotMatch(text: string, pattern: RegExp, message?: string): void
    function throws(run: () => unknown, expected: RegExp | object): void
    function rejects(promise: Promise<unknown>, expected: RegExp | object): Promise<void>
  }
  export default assert
}
