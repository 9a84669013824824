-- Posts the lines of a file in turn, and prints the run as JSON. Its own report comes first. A line may begin with a path
-- of its own and a tab.

local threads, bodies, sent = {}, {}, 0
failed = 0

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  for line in io.lines(arguments[1]) do
    local path, body = line:match("^(/%S*)\t(.*)$")
    table.insert(bodies, wrk.format("POST", path, nil, body or line))
  end
  if wrk.path:find("^/mcp") then
    function response(_, _, body)
      if body:find('"isError":true', 1, true) or body:find('"error":', 1, true) then
        failed = failed + 1
      end
    end
  end
end

function request()
  sent = sent % #bodies + 1
  return bodies[sent]
end

function done(summary, latency)
  local errors = summary.errors
  local count = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  for _, thread in ipairs(threads) do
    count = count + thread:get("failed")
  end
  local form = '{"calls": %d, "seconds": %f, "p50": %f, "p99": %f, "longest": %f, "errors": %d}\n'
  local micro = 1000000
  io.write(
    form:format(
      summary.requests,
      summary.duration / micro,
      latency:percentile(50) / micro,
      latency:percentile(99) / micro,
      latency.max / micro,
      count
    )
  )
end
