/** Words of the drawing of a workflow. */

export const graph = {
  types: {
    start: 'Start',
    end: 'End',
    task: 'Task',
    conditional: 'Condition',
    fan_out: 'Fan-out',
    fan_in: 'Fan-in',
  },
  otherwise: 'otherwise',
  or: ' or ',
  each: (handler: string) => `each: ${handler}`,
  ways: (count: number) => `${count} ways`,
  atOnce: (count: string) => `at most ${count} at once`,
  gathers: (fanOut: string, aggregation: string) => `${aggregation} of ${fanOut}`,
  done: (done: string, total: string) => `${done} / ${total}`,
  failed: (count: string) => `${count} failed`,
  retries: (count: number) => (count === 1 ? '1 retry' : `${count} retries`),
  select: 'Press Enter or the space bar to see more of this node.',
  controls: 'View',
  zoomIn: 'Zoom in',
  zoomOut: 'Zoom out',
  fit: 'Fit the whole graph',
}
