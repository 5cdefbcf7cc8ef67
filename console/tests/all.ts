/** All tests; who imports this has them run. */

import.meta.glob('./**/*.test.ts', { eager: true })
