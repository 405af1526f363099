#include "engine/runtime/cuda/device.h"

namespace cutaway::cuda {
namespace {

/// Data sheets that PyTorch 2.11 has, by the whole name of a device; in TFLOPS.
struct DataSheet {
    std::string_view name;
    double f32, tf32, bf16, f16;
};
constexpr DataSheet kDataSheets[] = {{"NVIDIA H100", 67.5, 156.0, 1979.0, 1979.0},
                                     {"NVIDIA A100", 19.5, 156.0, 312.5, 312.5},
                                     {"NVIDIA L4", 30.3, 120.0, 242.0, 242.0}};

/// Operations per clock in one of the four parts of a multiprocessor.
constexpr double kSimd = 32, kTensorTf32 = 256, kTensorHalf = 512, kTensorHalfBefore80 = 256;

void addRates(std::map<std::string, double>& figures, const std::string& device, double partsTimesGigahertz,
              int capability) {
    const auto tflops = [&](double perClock) { return partsTimesGigahertz * perClock * 1e-3; };
    const bool hasTensorTypes = capability >= 80;
    DataSheet rates = {device, tflops(kSimd), tflops(hasTensorTypes ? kTensorTf32 : kSimd),
                       tflops(hasTensorTypes ? kTensorHalf : kSimd),
                       tflops(hasTensorTypes ? kTensorHalf : kTensorHalfBefore80)};
    // Without a data sheet PyTorch takes the clock in megahertz for one in kilohertz.
    double asInPyTorch = 1e-3;
    for (const DataSheet& sheet : kDataSheets)
        if (sheet.name == device) {
            rates = sheet;
            asInPyTorch = 1;
        }
    const std::pair<const char*, double> all[] = {
        {"tflops_f32", rates.f32}, {"tflops_tf32", rates.tf32}, {"tflops_bf16", rates.bf16}, {"tflops_f16", rates.f16}};
    for (const auto& [name, value] : all) {
        figures[name] = value;
        figures[std::string(name) + "_parity"] = value * asInPyTorch;
    }
}

bool& opened() {
    static bool any = false;
    return any;
}

}  // namespace

bool Device::isOpen() { return opened(); }

Result<Device> Device::open() {
    Device device;
    CT_TRY(device.m_driver, Driver::load());
    const Driver& driver = device.m_driver;
    CT_TRY_VOID(driver.check(driver.init(0), "cuInit"));
    CT_TRY_VOID(driver.check(driver.deviceGet(&device.m_device, 0), "cuDeviceGet"));
    Context* context = nullptr;
    CT_TRY_VOID(driver.check(driver.devicePrimaryCtxRetain(&context, device.m_device), "cuDevicePrimaryCtxRetain"));
    opened() = true;
    CT_TRY_VOID(driver.check(driver.ctxSetCurrent(context), "cuCtxSetCurrent"));
    CT_TRY(const int64_t major, device.attribute(kCapabilityMajor));
    CT_TRY(const int64_t minor, device.attribute(kCapabilityMinor));
    device.m_capability = static_cast<int>(major * 10 + minor);
    char name[256] = {};
    CT_TRY_VOID(driver.check(driver.deviceGetName(name, sizeof name, device.m_device), "cuDeviceGetName"));
    device.m_name = name;
    return device;
}

Result<void> Device::openProducts() {
    CT_TRY(m_lt, CublasLt::load());
    return {};
}

Result<int64_t> Device::attribute(int number) const {
    int value = 0;
    CT_TRY_VOID(m_driver.check(m_driver.deviceGetAttribute(&value, number, m_device), "cuDeviceGetAttribute"));
    return int64_t{value};
}

std::map<std::string, double> Device::figures() const {
    std::map<std::string, double> figures;
    figures["capability"] = m_capability / 10 + m_capability % 10 / 10.0;
    // Newer drivers may no longer tell the clocks; what follows from them is unknown then.
    const auto clock = attribute(kClockRate), parts = attribute(kMultiprocessors);
    if (clock && parts && *clock > 0)
        addRates(figures, m_name, static_cast<double>(*parts) * 4 * static_cast<double>(*clock) * 1e-6, m_capability);
    const auto memoryClock = attribute(kMemoryClockRate), width = attribute(kMemoryBusWidth);
    if (memoryClock && width && *memoryClock > 0)
        figures["dram_gbps"] = static_cast<double>(*memoryClock) * static_cast<double>(*width) * 2 / 1e6 / 8;
    return figures;
}

}  // namespace cutaway::cuda
