// The designated experiment on settings.json, before.csv and after.csv: the document to chart.html, the rest to report.json.
var fs = require("fs"),
    d3 = require("./d3"),
    settings = JSON.parse(fs.readFileSync("settings.json", "utf8")),
    width = settings.size[0],
    height = settings.size[1],
    joins = {};

function rows(name) {
  return d3.csv.parse(fs.readFileSync(name, "utf8")).map(function(row) { return {name: row.name, value: +row.value}; });
}

function draw(data, ended) {
  var x = d3.scale.ordinal().domain(data.map(function(row) { return row.name; })).rangeBands([0, width]),
      y = d3.scale.linear().domain([0, d3.max(data, function(row) { return row.value; })]).range([0, height]),
      bars = svg.selectAll("rect.bar").data(data, function(row) { return row.name; }),
      left = data.length;

  joins = {enter: [], update: [], exit: []};
  bars.each(function(row) { joins.update.push(row.name); });
  bars.exit().each(function(row) { joins.exit.push(row.name); }).remove();
  bars.enter().append("rect").attr("class", "bar").attr("height", 0)
      .each(function(row) { joins.enter.push(row.name); });
  bars.attr("data-name", function(row) { return row.name; })
      .attr("x", function(row) { return x(row.name); })
      .attr("width", x.rangeBand());
  svg.selectAll("g.axis").remove();
  svg.append("g").attr("class", "axis").call(d3.svg.axis().scale(y));
  bars.transition().duration(50).attr("height", function(row) { return y(row.value); })
      .each("end", function() { if (!--left) ended(); });
}

function treemap() {
  var nodes = d3.layout.treemap().size(settings.size).round(false).nodes(settings.tree);
  return nodes.map(function(node) {
    return {name: node.name, parent: node.parent ? node.parent.name : null,
            x: node.x, y: node.y, dx: node.dx, dy: node.dy};
  });
}

function finish() {
  var date = d3.time.format("%A %e %B %Y, %a, %b, %x");
  fs.writeFileSync("chart.html", d3.select("body").node().ownerDocument.documentElement.outerHTML);
  fs.writeFileSync("report.json", JSON.stringify({
    version: d3.version,
    loaded: Object.keys(require.cache).filter(function(path) { return /\bd3\b[^/]*\.js$/.test(path); }),
    joins: joins,
    treemap: treemap(),
    voronoi: d3.geom.voronoi(settings.sites),
    dates: settings.dates.map(function(ymd) { return date(new Date(ymd[0], ymd[1] - 1, ymd[2])); }),
    numbers: settings.numbers.map(d3.format(",d"))
  }));
}

var svg = d3.select("body").append("svg").attr("width", width).attr("height", height);
draw(rows("before.csv"), function() { draw(rows("after.csv"), finish); });
